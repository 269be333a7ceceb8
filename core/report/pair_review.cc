#include "core/report/pair_review.h"

#include "core/base/random_stream.h"
#include "core/report/judge_page.h"
#include "core/report/pair_page.h"

namespace sheaf {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kPairBody = R"html(<main>
<header><h1>Two runs side by side</h1><span id="progress" role="status"></span></header>
<progress id="bar" value="0"></progress>
<p class="soft">Which side is right about the document? The page does not say which run is on which side, and the sides change from one to the next.</p>
<p class="soft" id="storage" hidden>This browser does not keep your verdicts. Download them before you close the page.</p>
<section><p class="soft" id="where"></p><div class="scroll"><table><thead><tr><th></th><th>Left</th><th>Right</th></tr></thead><tbody id="values"></tbody></table></div>
<p id="verdict" role="status"></p>
<div id="document" tabindex="0" role="region" aria-label="Document"></div></section>
<p id="done" hidden>Everything has a verdict. Download the file.</p>
<div class="buttons"><button id="left">Left <kbd>l</kbd></button><button id="right">Right <kbd>r</kbd></button>
<button id="both">Both <kbd>b</kbd></button><button id="neither">Neither <kbd>n</kbd></button><button id="undo">Undo <kbd>u</kbd></button>
<button id="back" aria-label="Previous">←</button><button id="next" aria-label="Next">→</button>
<button id="download">Download verdicts.jsonl</button></div>
</main>)html";

/// The value as JSON in a text, with the text of a chosen option; null where it was not asked for.
ordered_json side_json(const std::optional<RowAnswer>& answer) {
  if (!answer) return nullptr;
  const ordered_json value = value_json(answer->value);
  return {{"value", json_text(value)}, {"option", answer->option.value_or("")}};
}

ordered_json item_json(const PairItem& item) {
  ordered_json out{{"record", item.record}, {"question", item.question}, {"values", ordered_json::array()}};
  for (const PairValue& value : item.values)
    out["values"].push_back(
        {{"name", value.name}, {"left", side_json(value.left)}, {"right", side_json(value.right)}});
  return out;
}

}  // namespace

bool first_is_left(const std::string& key, uint64_t seed, const std::string& item) {
  return (mix(mix(seed, hash_text(key)), hash_text(item)) >> 63) != 0;
}

std::string pair_html(const PairReview& review, std::string_view script_sha256,
                      std::string_view style_sha256) {
  ordered_json data{{"key", review.key}, {"seed", std::to_string(review.seed)}};
  for (const Record& record : review.records) data["records"].push_back(record_json(record));
  for (const PairItem& item : review.items) data["items"].push_back(item_json(item));
  return judge_page_html({"sheaf review: two runs side by side", kPairBody, kPairScript, kPairStyle,
                          script_sha256, style_sha256},
                         data);
}

}  // namespace sheaf
