#pragma once
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "io/base/file_layer.h"
#include "tests/io/folder_contents.h"

namespace sheaf {

/// What a process that is killed would do next: nothing. No Error, so that nobody catches it on the way.
struct Killed {};

enum class FaultKind { error, short_write, kill_before, kill_in_write, kill_after };

/// The real files, of which operation number `at` (from 1) fails or is the last one the process does. Nothing
/// is synced in truth: a killed process loses no page that it wrote.
class FaultyFiles : public FileLayer {
 public:
  FaultyFiles(FaultKind kind, int at) : kind_(kind), at_(at) {}

  std::unique_ptr<OutputFile> open(const std::string& path) override {
    std::unique_ptr<OutputFile> inner;
    act([&] { inner = real_files().open(path); });
    return std::make_unique<File>(*this, std::move(inner));
  }
  void rename(const std::string& from, const std::string& to) override {
    act([&] { real_files().rename(from, to); });
  }
  void remove(const std::string& path) override {
    act([&] { real_files().remove(path); });
  }
  void make_folder(const std::string& path) override {
    act([&] { real_files().make_folder(path); });
  }
  void remove_folder(const std::string& path) override {
    act([&] { real_files().remove_folder(path); });
  }
  bool exchange(const std::string& a, const std::string& b) override {
    if (!can_exchange) return false;
    act([&] { real_files().exchange(a, b); });
    return true;
  }
  void sync_folder(const std::string&) override {
    act([] {});
  }
  std::unique_ptr<FolderLock> lock(const std::string& folder) override { return real_files().lock(folder); }

  int done() const { return done_; }
  bool can_exchange = true;

 private:
  class File : public OutputFile {
   public:
    File(FaultyFiles& layer, std::unique_ptr<OutputFile> inner) : layer_(layer), inner_(std::move(inner)) {}
    void append(std::string_view bytes) override {
      layer_.act([&] { inner_->append(bytes); }, [&] { inner_->append(bytes.substr(0, bytes.size() / 2)); });
    }
    void truncate(int64_t size) override {
      layer_.act([&] { inner_->truncate(size); });
    }
    void sync() override {
      layer_.act([] {});
    }

   private:
    FaultyFiles& layer_;
    std::unique_ptr<OutputFile> inner_;
  };

  void act(
      const std::function<void()>& whole, const std::function<void()>& half = [] {}) {
    if (dead_) throw Killed();
    if (++done_ != at_) return whole();
    const bool kill = kind_ != FaultKind::error && kind_ != FaultKind::short_write;
    dead_ = kill;
    if (kind_ == FaultKind::short_write || kind_ == FaultKind::kill_in_write) half();
    if (kind_ == FaultKind::kill_after) whole();
    if (kill) throw Killed();
    fail("the disk is full; free some space and rerun the same command to resume");
  }

  FaultKind kind_;
  int at_;
  int done_ = 0;
  bool dead_ = false;
};

/// Real files that are never synced: what is on the disk makes no difference to a test.
inline FileLayer& quick_files() {
  static FaultyFiles files(FaultKind::error, 0);
  return files;
}

/// States of a folder from which work was resumed before. What becomes of one depends on nothing else, so it
/// is tried once, however many faults lead to it.
class TriedStates {
 public:
  bool is_new(const std::string& folder) { return states_.insert(contents(folder)).second; }

 private:
  std::set<FolderContents> states_;
};

/// Real files with a memory of what would outlive a power loss: the bytes of a file as of its last sync, the
/// names in a folder as of the folder's last sync, the folders that were there before or were made with
/// make_folder(). Operation `at` does not happen any more.
class PowerLossFiles : public FileLayer {
 public:
  PowerLossFiles(const std::string& root, int at) : at_(at), root_(root), before_(contents(root)) {
    namespace fs = std::filesystem;
    if (!fs::is_directory(root)) return;
    folders_.insert(root);
    for (const auto& entry : fs::recursive_directory_iterator(root))
      if (entry.is_directory()) folders_.insert(entry.path());
  }

  std::unique_ptr<OutputFile> open(const std::string& path) override {
    count();
    look_at(path);
    auto inner = real_files().open(path);
    if (!names_.contains(path))
      change(path, [path, made = std::make_shared<Bytes>()](Names& names) { names[path] = made; });
    return std::make_unique<File>(*this, names_.at(path), std::move(inner));
  }
  void rename(const std::string& from, const std::string& to) override {
    count();
    look_at(from);
    look_at(to);
    real_files().rename(from, to);
    change(to, [from, to](Names& names) {
      names[to] = names.at(from);
      names.erase(from);
    });
  }
  void remove(const std::string& path) override {
    count();
    look_at(path);
    real_files().remove(path);
    change(path, [path](Names& names) { names.erase(path); });
  }
  void make_folder(const std::string& path) override {
    count();
    real_files().make_folder(path);
    for (std::string made = path; !made.empty() && folders_.insert(made).second;) made = folder_of(made);
  }
  void remove_folder(const std::string&) override { fail("not remembered here"); }
  bool exchange(const std::string&, const std::string&) override { fail("not remembered here"); }
  void sync_folder(const std::string& path) override {
    count();
    for (const auto& change : changes_[path]) change(durable_names_);
    changes_[path].clear();
  }
  std::unique_ptr<FolderLock> lock(const std::string& folder) override { return real_files().lock(folder); }

  int done() const { return done_; }

  /// Leaves on the disk what a power loss could: `seed` 0 forgets all that was not synced, 1 forgets
  /// nothing, others forget some of it and may leave zeros where bytes should be. What was done to the folder
  /// since, after another seed, is forgotten too.
  void lose_power(uint32_t seed) const {
    std::mt19937 random(seed);
    const auto below = [&](size_t bound) { return static_cast<size_t>(random() % bound); };
    Names names = durable_names_;
    for (const auto& [folder, changes] : changes_) {
      const size_t applied = seed == 0 ? 0 : seed == 1 ? changes.size() : below(changes.size() + 1);
      for (size_t i = 0; i < applied; ++i) changes[i](names);
    }
    put_back(root_, before_);
    for (const std::string& folder : folders_) std::filesystem::create_directories(folder);
    for (const std::string& path : seen_) std::filesystem::remove(path);
    for (const auto& [path, bytes] : names) {
      std::filesystem::create_directories(folder_of(path));
      std::string left = seed == 1 ? bytes->now : bytes->durable;
      if (seed > 1 && bytes->now.starts_with(bytes->durable)) {
        const size_t more = bytes->now.size() - bytes->durable.size();
        left = bytes->now.substr(0, bytes->durable.size() + below(more + 1));
        if (below(3) == 0) left.resize(bytes->now.size());
      } else if (seed > 1 && below(2) == 0) {
        left = bytes->now;
      }
      std::ofstream(path, std::ios::binary).write(left.data(), static_cast<std::streamsize>(left.size()));
    }
    for (const std::string& path : seen_)
      if (const std::string folder = folder_of(path);
          !folders_.contains(folder) && (seed == 0 || (seed > 1 && below(2) == 0)))
        std::filesystem::remove_all(folder);
  }

 private:
  struct Bytes {
    std::string now, durable;
  };
  using Names = std::map<std::string, std::shared_ptr<Bytes>>;
  using Change = std::function<void(Names&)>;

  class File : public OutputFile {
   public:
    File(PowerLossFiles& layer, std::shared_ptr<Bytes> bytes, std::unique_ptr<OutputFile> inner)
        : layer_(layer), bytes_(std::move(bytes)), inner_(std::move(inner)) {}
    void append(std::string_view text) override {
      layer_.count();
      inner_->append(text);
      bytes_->now += text;
    }
    void truncate(int64_t size) override {
      layer_.count();
      inner_->truncate(size);
      bytes_->now.resize(static_cast<size_t>(size));
    }
    void sync() override {
      layer_.count();
      bytes_->durable = bytes_->now;
    }

   private:
    PowerLossFiles& layer_;
    std::shared_ptr<Bytes> bytes_;
    std::unique_ptr<OutputFile> inner_;
  };

  static std::string folder_of(const std::string& path) { return std::filesystem::path(path).parent_path(); }
  /// What lies there before anything is done to it is on the disk.
  void look_at(const std::string& path) {
    if (!seen_.insert(path).second) return;
    const auto text = read_whole(path);
    if (text) names_[path] = durable_names_[path] = std::make_shared<Bytes>(Bytes{*text, *text});
  }
  void count() {
    if (++done_ >= at_) throw Killed();
  }
  void change(const std::string& path, const Change& change) {
    change(names_);
    changes_[folder_of(path)].push_back(change);
  }

  int at_;
  int done_ = 0;
  std::string root_;
  FolderContents before_;
  Names names_, durable_names_;
  std::map<std::string, std::vector<Change>> changes_;  // of names, since their folder was last synced
  std::set<std::string> seen_, folders_;
};

}  // namespace sheaf
