#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/task/proposed_attributes.h"
#include "io/jobs/run_job.h"

namespace sheaf {

struct DiscoverSettings {
  int32_t products = 12;        ///< most products of a category that the model sees
  int32_t together = 6;         ///< products in a prompt
  int32_t attributes = 16;      ///< most attributes of a category
  int32_t categories = 200;     ///< asks about so many categories, those with the most products
  int32_t reply_tokens = 2048;  ///< most tokens of a reply
  uint64_t seed = 0;            ///< of the choice of products
  std::string model;            ///< asked in place of the job's; empty: the job's, without its adapter
  std::string prompt;           ///< YAML file with the key `request`; empty: discover_prompt()
  std::string work;             ///< folder of the requests and their run; empty: output.path.discover
};

struct DiscoveredCategory {
  std::string name;
  int64_t records = 0;            ///< of the corpus
  int64_t shown = 0;              ///< products that the model saw
  int64_t prompts = 0, read = 0;  ///< replies that gave attributes
  std::vector<MergedAttribute> attributes = {};
  int64_t left_out = 0;  ///< attributes beyond the most
};

struct DiscoverEnd {
  std::vector<DiscoveredCategory> categories;  ///< in the order in which the corpus has them
  std::string schema;                          ///< the schema file
  std::string work;                            ///< where the requests and the replies are
  std::vector<std::string> unread;             ///< prompts whose replies give no attribute
  std::vector<std::string> rejected;           ///< prompts that got no reply, such as one that is too long
  int64_t without_category = 0;                ///< records whose category is blank or too long for a name
  int64_t rejects = 0;                         ///< records that cannot be read
  std::string first_reject;                    ///< place and reason
  int64_t further_categories = 0;              ///< categories beyond the most that are asked about
  std::string interrupted;                     ///< what to tell the user where it was; then the rest is empty

  /// What is wrong with the result, a sentence each; empty: nothing.
  std::vector<std::string> troubles() const;
  /// Counts by category, and what is wrong; without the schema.
  nlohmann::ordered_json json() const;
};

/// Asks a model for the attributes of each category, by a sample of its products (extract), and merges what
/// it proposes. The replies stay in the work folder: with the same settings and corpus they are not asked for
/// again, and an interrupted run resumes. Refuses where no reply gives an attribute.
DiscoverEnd discover_attributes(const Job& job, const DiscoverSettings& settings, RunListener& listener);

/// The categories as a schema file, with what is known about each attribute in comments. `about` is the first
/// line of its head.
std::string discovered_schema(const std::vector<DiscoveredCategory>& categories, const std::string& about);

}  // namespace sheaf
