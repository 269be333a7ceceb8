// How fast answers of an earlier run are found, and what they take on disk.
//   cmake --build build/release --target bench_answers && build/release/bench/bench_answers [millions]
//   [folder]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "core/base/random_stream.h"
#include "io/answers/answer_log.h"
#include "io/base/file_layer.h"

namespace {

using namespace sheaf;

AnswerKey key_of(uint64_t number) {
  AnswerKey key;
  const uint64_t a = mix(1, number), b = mix(2, number);
  std::memcpy(key.data(), &a, 8);
  std::memcpy(key.data() + 8, &b, 4);
  return key;
}

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

int main(int argc, char** argv) {
  const auto count = static_cast<uint64_t>((argc > 1 ? std::atof(argv[1]) : 10) * 1e6);
  const std::string folder =
      (argc > 2 ? std::string(argv[2]) : std::filesystem::temp_directory_path().string()) +
      "/sheaf-bench-answers";
  std::filesystem::create_directories(folder);
  double start = seconds();
  {
    AnswerLog log(real_files(), folder, 0);
    Answer answer{{260, 1043, 28, 198}, Ending::delimiter, -0.5};
    for (uint64_t i = 0; i < count; ++i) {
      answer.tokens[1] = static_cast<TokenId>(i % 49000);
      log.add(key_of(i), answer);
      if (i % 5000 == 4999) log.commit(static_cast<int64_t>(i));
    }
    log.commit(static_cast<int64_t>(count));
    const double added = seconds();
    log.finish(nlohmann::ordered_json::object());
    std::printf("added %.2f million a second; the table took %.1f s\n",
                static_cast<double>(count) / (added - start) / 1e6, seconds() - added);
  }
  const auto bytes =
      static_cast<double>(*file_size(folder + "/answers.log") + *file_size(folder + "/answers.table"));
  start = seconds();
  std::string trouble;
  const EarlierAnswers earlier(folder, nlohmann::ordered_json::object(), trouble);
  std::printf("opened and checked in %.2f s%s%s\n", seconds() - start, trouble.empty() ? "" : ": ",
              trouble.c_str());
  for (const uint64_t first : {uint64_t{0}, count}) {
    start = seconds();
    uint64_t found = 0;
    for (uint64_t i = 0; i < count; ++i) found += earlier.find(key_of(first + mix(3, i) % count)).has_value();
    std::printf("%s: %.2f million lookups a second, %llu found\n", first == 0 ? "known" : "unknown",
                static_cast<double>(count) / (seconds() - start) / 1e6,
                static_cast<unsigned long long>(found));
  }
  std::printf("%.1f bytes a value\n", bytes / static_cast<double>(count));
  std::filesystem::remove_all(folder);
}
