#pragma once
#include <string>

#include "core/tokenizer/chat_template.h"

namespace sheaf::test {

/// The whole text of a dialog's prompt.
inline std::string rendered(const ChatTemplate& chat, const Dialog& dialog) {
  const DialogPieces pieces = dialog_pieces(chat, dialog);
  std::string text;
  for (const auto& part : {pieces.before, pieces.last})
    for (const TextPiece& piece : part) text += piece.text;
  return text;
}

}  // namespace sheaf::test
