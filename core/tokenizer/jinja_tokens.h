#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sheaf {

struct JinjaToken {
  enum class Kind : uint8_t { text, open_print, open_block, close, name, string, integer, symbol, end };
  Kind kind = Kind::end;
  std::string text;  ///< of a string: without its quotes and escapes
  int64_t number = 0;
  int line = 1;
};

/// A template cut into text and what stands in its tags, without comments and without the white space that
/// tags take away. The last token is `end`. Throws BadText.
std::vector<JinjaToken> read_jinja_tokens(std::string_view text);

}  // namespace sheaf
