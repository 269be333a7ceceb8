#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "io/kv_store/kv_folder.h"

namespace sheaf {

struct KvTotals {
  int64_t segments = 0, tokens = 0, bytes = 0;
};

/// The files of a store that one model, computing in one way, made and uses.
struct KvContents : KvTotals {
  std::string model, kind, state;
  std::string title;  ///< the part of model, kind and state that tells this entry from the others
  std::filesystem::file_time_type used;  ///< last of all
};

/// A file that cannot be used, and why.
struct KvTrouble {
  std::string path, trouble;
  bool damaged = false;  ///< for good
};

struct KvListing {
  std::vector<KvContents> contents;  ///< the one used last first
  KvTotals total;
  std::vector<KvTrouble> troubles;
};

/// Reads the head of every file; with `whole`, checks every byte.
KvListing list_contents(const KvFolder& folder, bool whole);

/// Deletes the damaged files of a listing, and says so in its troubles. Returns how many files that cannot be
/// used are left.
int64_t remove_damaged(KvListing& listing);

}  // namespace sheaf
