// What a plan says of a mixture of experts.
#include <gtest/gtest.h>

#include "io/jobs/plan_job.h"

namespace sheaf {
namespace {

TEST(PlanOfExperts, SaysHowManyTokensAnExpertTakes) {
  JobPlan plan;
  plan.engine.steps = 4;
  plan.engine.prefill_tokens = 30000;
  plan.engine.decode_tokens = 2768;
  EXPECT_FALSE(plan.json().contains("rows_per_expert"));
  EXPECT_EQ(plan.text({}).find("experts"), std::string::npos);
  plan.experts = {.count = 128, .per_token = 8, .ffn = 768};
  EXPECT_EQ(plan.json()["rows_per_expert"], 512);
  EXPECT_NE(plan.text({}).find("each of the 128 of a layer 512 tokens"), std::string::npos) << plan.text({});
  plan.engine.steps = 0;
  EXPECT_EQ(plan.json()["rows_per_expert"], 0);
}

}  // namespace
}  // namespace sheaf
