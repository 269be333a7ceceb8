#pragma once
#include "core/metrics/metric.h"

namespace sheaf {

// One file each.
Metric squad_metric();
Metric squad1_metric();
Metric exact_match_metric();
Metric subspan_em_metric();
Metric hotpotqa_metric();
Metric musique_metric();
Metric rouge_l_metric();
Metric rouge_l_stem_metric();
Metric accuracy_metric();
Metric agreement_metric();
Metric quac_metric();
Metric drop_metric();
Metric attributes_metric();
Metric judged_metric();

}  // namespace sheaf
