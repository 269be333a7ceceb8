// Text in lines of a width.
#include "core/text/wrap.h"

#include <gtest/gtest.h>

namespace sheaf {
namespace {

using Lines = std::vector<std::string>;

TEST(Wrap, BreaksAtBlanksAndCountsCharacters) {
  EXPECT_EQ(wrap_lines("one two three", 8), (Lines{"one two", "three"}));
  EXPECT_EQ(wrap_lines("äöüäöü äöü", 6), (Lines{"äöüäöü", "äöü"})) << "characters, not bytes";
  EXPECT_EQ(wrap_lines("abcdefgh", 3), (Lines{"abc", "def", "gh"})) << "no blank: anywhere";
  EXPECT_EQ(wrap_lines("a\nb", 10), (Lines{"a", "b"}));
}

TEST(Wrap, PutsTextBesideItsTerm) {
  EXPECT_EQ(wrap_beside("-q", "say nothing at all, ever", 6, 26), "-q    say nothing at all,\n      ever\n");
  EXPECT_EQ(wrap_beside("--quiet", "say nothing", 6, 40), "--quiet\n      say nothing\n");
  EXPECT_EQ(wrap_beside("-q", "", 6, 40), "-q\n");
}

TEST(Wrap, KeepsALayout) {
  EXPECT_EQ(wrap_layout("Names:\n  one   the first of all the names here\n\nend", 32),
            "Names:\n  one   the first of all the\n        names here\n\nend\n");
}

}  // namespace
}  // namespace sheaf
