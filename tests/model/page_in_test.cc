#include <algorithm>
#include <bit>
#include <cerrno>
#include <filesystem>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "core/base/error.h"
#include "core/model/model.h"
#include "io/base/mapped_file.h"
#include "tests/files.h"
#include "tests/skip.h"

namespace sheaf {
namespace {

constexpr int64_t cols = 1024, rows = 64;  // 4 kB a row

class PageIn : public testing::Test {
 protected:
  void SetUp() override {
    path_ = folder_.write("weights.bin", std::string(rows * cols * 4, '\1'));
    file_ = MappedFile::open(path_);
    matrix_.name = "some.weight";
    matrix_.rows = rows;
    matrix_.cols = cols;
    matrix_.data = file_->bytes().data();
    // 22 is MADV_POPULATE_READ.
    const bool can = madvise(const_cast<std::byte*>(matrix_.data), 4096, 22) == 0 || errno != EINVAL;
    SKIP_UNLESS(can, test::Lacking::paging_in, "this kernel cannot page in a range (Linux 5.14 can)");
  }

  TempFolder folder_;
  std::string path_;
  std::shared_ptr<const MappedFile> file_;
  Matrix matrix_;
};

TEST_F(PageIn, PagesInAnyRows) {
  matrix_.page_in(0, rows);
  matrix_.page_in(3, 1);
  matrix_.rope_head_dim = 16;
  matrix_.page_in(17, 30);
  matrix_.data += 2;  // not at the start of a page
  matrix_.page_in(0, rows - 16);
  std::vector<float> row(cols);
  matrix_.read(1, 1, row.data());
  EXPECT_EQ(std::ranges::count(row, std::bit_cast<float>(0x01010101)), cols);
}

TEST_F(PageIn, AFileCutShortIsNamed) {
  std::filesystem::resize_file(path_, rows / 2 * cols * 4);
  matrix_.page_in(0, rows / 2);
  try {
    matrix_.page_in(rows / 2 - 1, 2);
    FAIL() << "nothing was said";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::fatal);
    EXPECT_NE(std::string(error.what()).find(path_ + ": tensor some.weight cannot be read"),
              std::string::npos)
        << error.what();
  }
  // A paired head is taken whole, and half of this one is gone.
  matrix_.rope_head_dim = 64;
  EXPECT_THROW(matrix_.page_in(0, 4), Error);
}

}  // namespace
}  // namespace sheaf
