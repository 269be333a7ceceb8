#include "io/jobs/needle_corpus.h"

#include "core/base/error.h"
#include "io/base/descriptor.h"
#include "io/base/file_layer.h"
#include "io/base/named_output.h"
#include "io/datasets/dataset.h"
#include "io/model/model_files.h"

namespace sheaf {

Converted write_needles(const std::string& book, const std::string& to, const std::string& model,
                        NeedleOptions needle) {
  check_not_read(to, {book});
  check_readable(book);
  const auto text = read_whole(book);
  if (!text) refuse("{}: no such file; needle needs a book as plain text", book);
  if (const std::string other = likely_format("needle", book); !other.empty())
    refuse("{}: this looks like {}; needle needs a book as plain text", book, other);
  LoadedTokenizer loaded;
  if (!model.empty()) {
    loaded = load_tokenizer(model);
    needle.measure = [&](const std::string& excerpt) {
      Tokens tokens;
      loaded.tokenizer->encode(excerpt, false, tokens);
      return static_cast<int64_t>(tokens.size());
    };
  }
  CorpusWriter writer(to, TaskKind::ask);
  Converted done;
  for (const auto& row : make_needles(*text, book, needle)) {
    writer.add(row);
    ++done.rows;
    done.questions += static_cast<int64_t>(row["questions"].size());
  }
  writer.finish();
  return done;
}

}  // namespace sheaf
