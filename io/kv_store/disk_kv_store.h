#pragma once
#include <condition_variable>
#include <deque>
#include <list>
#include <map>
#include <mutex>
#include <thread>

#include "io/base/sha256.h"
#include "io/kv_store/kv_folder.h"

namespace sheaf {

struct KvStoreOptions {
  int64_t bytes = 0;         ///< most that the folder holds
  int64_t memory_bytes = 0;  ///< most that this process holds of it
  int threads = 1;           ///< threads that read; as many write
  KvForm form = KvForm::computed;
  bool patient = false;  ///< what is computed is kept even where the disk is slower than the device
};

/// Keys and values in a folder, with what was used last in memory in front of it. Readers and a writer have
/// threads of their own.
class DiskKvStore final : public KvStore {
 public:
  using Allocate = std::function<std::shared_ptr<std::byte>(int64_t bytes)>;

  /// `model`: what of the model and its adapter decides keys and values; `name` is for people. `kind`: of the
  /// backend, and of what is kept. `allocate`: memory that the backend moves bytes from and to.
  DiskKvStore(KvFolder folder, const std::string& model, std::string name, std::string kind,
              const KvStoreOptions& options, Allocate allocate);
  ~DiskKvStore() override;

  KvForm form() const override { return options_.form; }
  KvKey key(const Segment& segment, std::span<const KvKey> seen, int32_t page_size) const override;
  std::shared_ptr<const KvFetch> fetch(const KvKey& key, int64_t bytes, int64_t tokens,
                                       double seconds) override;
  void expect(const KvKey& key, int64_t bytes, double seconds) override;
  bool wants(const KvKey& key, int64_t bytes, int64_t tokens) override;
  KvBytes room(int64_t bytes) override;
  void keep(const KvKey& key, Role role, int32_t tokens, KvBytes bytes) override;

  /// Waits until everything that is to be kept is written.
  void flush();
  KvStoreUse use() const;
  /// What the user should know, since the last call.
  std::vector<std::string> take_notices();

 private:
  struct Held;
  struct Write {
    KvFileHead head;
    KvBytes bytes;
  };

  void read_files(const std::stop_token& stop);
  void write_files(const std::stop_token& stop);
  void read(Held& held);
  std::shared_ptr<Held> begin(const KvKey& key, int64_t bytes);
  void taken(Held& held);
  double speed() const;
  bool pays(int64_t bytes, double seconds);
  void make_space(int64_t bytes);
  void limit_folder(int64_t added, std::string& trouble);
  void note_trouble(const std::string& path, const ReadKv& read);

  KvFolder folder_;
  Sha256 base_;
  const std::string name_, kind_;
  std::string state_;  ///< of all that base_ is of
  const KvStoreOptions options_;
  const Allocate allocate_;

  mutable std::mutex mutex_;  ///< of all that follows
  std::condition_variable_any changed_;
  std::map<KvKey, std::shared_ptr<Held>> held_;
  std::list<KvKey> by_use_;  ///< of those held, longest unused first
  int64_t held_bytes_ = 0;
  int64_t ahead_bytes_ = 0;  ///< read, or to be read, before an engine asked for them
  std::deque<std::shared_ptr<Held>> to_read_;
  std::deque<Write> to_write_;
  int64_t write_bytes_ = 0;  ///< bytes that wait to be written or are being written
  bool writing_ = true;      ///< false once the disk refused
  int64_t folder_bytes_ = 0;
  double known_speed_ = 0;   ///< of the disk, by an earlier process; 0: not known
  int64_t tried_bytes_ = 0;  ///< read to find out how quick the disk is
  KvStoreUse use_;
  std::vector<std::string> notices_;
  std::vector<std::jthread> threads_;
};

}  // namespace sheaf
