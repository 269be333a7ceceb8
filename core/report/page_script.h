#pragma once
#include <algorithm>
#include <array>
#include <string_view>

namespace sheaf {

template <const std::string_view&... parts>
struct JoinedText {
  static constexpr auto kText = [] {
    std::array<char, (parts.size() + ...)> text{};
    char* end = text.data();
    ((end = std::copy(parts.begin(), parts.end(), end)), ...);
    return text;
  }();
};

/// Texts one after the other.
template <const std::string_view&... parts>
inline constexpr std::string_view kJoined{JoinedText<parts...>::kText.data(),
                                          JoinedText<parts...>::kText.size()};

/// What the scripts of pages for people who judge share: the data of the page, and texts shown by textContent
/// only.
inline constexpr std::string_view kPageScript = R"js(
'use strict';
const data = JSON.parse(document.getElementById('data').textContent);
const at = id => document.getElementById(id);

// Characters that hide, or that turn the direction of text around, are named in place of being obeyed.
// Between emoji a joiner (U+200D) makes one of two.
const hidden = new RegExp('([\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b' +
  '\\u200c\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u2800\\u3164\\ufeff\\u{e0000}-\\u{e007f}]|' +
  '(?<![\\p{Extended_Pictographic}\\p{Emoji_Modifier}\\ufe0f])\\u200d|\\u200d(?!\\p{Extended_Pictographic}))', 'u');

function addText(parent, text) {
  text.split(hidden).forEach((part, i) => {
    if (i % 2 === 0) return parent.append(part);
    const code = document.createElement('span');
    code.className = 'code';
    code.textContent = 'U+' + part.codePointAt(0).toString(16).toUpperCase().padStart(4, '0');
    parent.append(code);
  });
}

function setText(id, text) {
  at(id).textContent = '';
  addText(at(id), text);
}

function shownValue(json) {
  const value = JSON.parse(json);
  if (value === null) return 'null';
  if (Array.isArray(value) && value.every(part => typeof part === 'string')) return value.join('\n');
  return typeof value === 'string' ? value : json;
}

function download(name, lines) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([lines], {type: 'application/jsonl'}));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
)js";

}  // namespace sheaf
