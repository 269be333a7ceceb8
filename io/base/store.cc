#include "io/base/store.h"

#include <algorithm>
#include <arrow/filesystem/filesystem.h>
#include <arrow/io/interfaces.h>
#include <arrow/util/config.h>
#include <arrow/util/key_value_metadata.h>
#include <cstdlib>
#include <fnmatch.h>
#include <ranges>
#include <unordered_map>
#ifdef ARROW_S3
#include <arrow/filesystem/s3fs.h>
#endif

#include "core/base/interrupted.h"
#include "core/base/thread_pool.h"
#include "core/text/printable.h"
#include "core/text/spelling.h"
#include "core/text/utf8.h"
#include "io/base/file_layer.h"
#include "io/base/globs.h"
#include "io/base/paths.h"
#include "io/base/sha256.h"
#include "io/base/store_retry.h"

namespace sheaf {
namespace {

namespace stores = arrow::fs;

constexpr int64_t kLargestText = 256 << 20;
constexpr int64_t kPiece = 1 << 20;
constexpr int64_t kAskedAtOnce = 32;  // objects
constexpr size_t kMostExpected = 4;

struct Root {
  std::shared_ptr<stores::FileSystem> files;
  std::string path;  ///< of the root in it: the bucket
};

struct Listed {
  Root root;
  stores::FileInfo info;
};

/// What is open, for the whole process.
struct Opened {
  std::mutex mutex;
  bool started = false;
  std::map<std::string, Root> roots;               ///< by URI
  std::unordered_map<std::string, Listed> listed;  ///< by URI
  std::map<std::string, std::shared_ptr<arrow::io::RandomAccessFile>> expected;
};

Opened& opened() {
  static auto* const all = new Opened;  // close_stores() empties it; Arrow may be gone when statics are
  return *all;
}

std::string said(const arrow::Status& status) {
  std::string text = status.message();
  std::ranges::replace(text, '\n', ' ');
  return shorten_text(printable_line(text), 300);
}

[[noreturn]] void give_up(const std::string& name, const char* what, const arrow::Status& status) {
  const std::string text = fmt::format("{}: sheaf cannot {} it: {}", name, what, said(status));
  if (may_pass(status))
    throw StoreUnreachable(text + "; rerun the same command once the store can be reached");
  refuse("{}; check the name and the rights of your credentials", text);
}

/// As ask_store(), but ends the work where there is no answer.
template <class Ask>
auto need_answer(const std::string& name, const char* what, Ask&& ask) {
  auto answer = ask_store(std::forward<Ask>(ask));
  if (!answer.ok()) give_up(name, what, status_of(answer));
  return answer;
}

/// Where this system has the certificates of authorities; the wheel's own path is that of another one.
std::string find_certificates() {
  if (const char* named = std::getenv("SSL_CERT_FILE"); named && *named) return named;
  for (const char* path : {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
                           "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"})
    if (is_there(path)) return path;
  return {};
}

std::string what_is_missing(const StoreUri& uri, const arrow::Status& status) {
  if (uri.scheme == "hdfs")
    return fmt::format(
        "HDFS needs Java and libhdfs: set JAVA_HOME, HADOOP_HOME and CLASSPATH (`hadoop classpath --glob`), "
        "or "
        "mount it and name the folder ({})",
        said(status));
  if (status.IsNotImplemented() || status.IsInvalid())
    return fmt::format("{}; if this build of Arrow has no {} file system, copy the files to this machine",
                       said(status), uri.scheme);
  return said(status);
}

#ifdef ARROW_S3
/// The SDK waits seconds for each attempt, and by itself would hold a run for minutes that is told to stop.
class FewAttempts : public stores::S3RetryStrategy {
 public:
  bool ShouldRetry(const AWSErrorDetail& error, int64_t attempted) override {
    return !*own_stop && error.should_retry && attempted < 2;
  }
  int64_t CalculateDelayBeforeNextRetry(const AWSErrorDetail&, int64_t attempted) override {
    return 100 << attempted;  // milliseconds
  }
};
#endif

arrow::Result<std::shared_ptr<stores::FileSystem>> connect(const StoreUri& uri, std::string& path) {
#ifdef ARROW_S3
  if (uri.scheme == "s3") {
    ARROW_RETURN_NOT_OK(stores::EnsureS3Initialized());
    ARROW_ASSIGN_OR_RAISE(auto options, stores::S3Options::FromUri(uri.root(), &path));
    options.retry_strategy = std::make_shared<FewAttempts>();
    options.allow_delayed_open = true;  // a small object is one request
    return stores::S3FileSystem::Make(options);
  }
#endif
  return stores::FileSystemFromUri(uri.root(), &path);
}

Root open_root(const StoreUri& uri) {
  Opened& all = opened();
  const std::string root_uri = uri.root();
  const std::lock_guard lock(all.mutex);
  if (const auto known = all.roots.find(root_uri); known != all.roots.end()) return known->second;
  if (!all.started) {
    stores::FileSystemGlobalOptions options;
    options.tls_ca_file_path = find_certificates();
    if (const auto status = stores::Initialize(options); !status.ok())
      fail("the file systems of Arrow cannot be started: {}", said(status));
    all.started = true;
  }
  Root root;
  auto made = connect(uri, root.path);
  if (!made.ok()) {
    if (may_pass(made.status()) && uri.scheme != "hdfs") give_up(uri.name(), "open", made.status());
    refuse("{}: {}", uri.name(), what_is_missing(uri, made.status()));
  }
  root.files = std::move(made).ValueUnsafe();
  all.roots[root_uri] = root;
  return root;
}

std::string path_in(const Root& root, const std::string& key) {
  if (root.path.empty() || root.path.ends_with('/')) return root.path + key;
  return key.empty() ? root.path : root.path + "/" + key;
}

std::string key_in(const Root& root, const std::string& path) {
  std::string_view key = path;
  if (key.starts_with(root.path)) key.remove_prefix(root.path.size());
  while (key.starts_with('/')) key.remove_prefix(1);
  return std::string(key);
}

/// Whether a folder of the key is hidden, or the file is.
bool is_hidden(std::string_view below) {
  return std::ranges::any_of(std::views::split(below, '/'), [](const auto& part) {
    return is_passed_over(std::string(part.begin(), part.end()));
  });
}

std::vector<stores::FileInfo> list_folder(const Root& root, const std::string& key, bool deep,
                                          const std::string& name) {
  stores::FileSelector folder;
  folder.base_dir = path_in(root, key);
  folder.allow_not_found = true;
  folder.recursive = deep;
  return *need_answer(name, "list", [&] { return root.files->GetFileInfo(folder); });
}

stores::FileInfo ask_about(const Root& root, const std::string& key, const std::string& name) {
  return *need_answer(name, "look at", [&] { return root.files->GetFileInfo(path_in(root, key)); });
}

Listed find_listed(const std::string& uri) {
  Opened& all = opened();
  {
    const std::lock_guard lock(all.mutex);
    if (const auto known = all.listed.find(uri); known != all.listed.end()) return known->second;
  }
  const StoreUri parts = parse_store_uri(uri);
  const Root root = open_root(parts);
  Listed found{root, ask_about(root, parts.key, parts.name())};
  if (found.info.type() != stores::FileType::File) refuse("{}: no such file", parts.name());
  return found;
}

std::shared_ptr<arrow::io::RandomAccessFile> open_listed(const Listed& file, const std::string& uri) {
  auto made = need_answer(uri, "read", [&] { return file.root.files->OpenInputFile(file.info); });
  return read_ahead(*std::move(made), file.info.size(), uri);
}

FileIdentity identity_of(const stores::FileInfo& info) {
  FileIdentity identity;
  identity.bytes = info.size();
  identity.changed =
      std::chrono::duration_cast<std::chrono::microseconds>(info.mtime().time_since_epoch()).count();
  return identity;
}

/// Listings of Arrow have no ETags, so the store is asked about the object. Throws where the listing had
/// another size: what is read by it would be cut.
std::string etag_of(const Listed& object, const std::string& uri) {
  const std::string kind = object.root.files->type_name();
  if (kind == "local" || kind == "hdfs") return {};
  int64_t size = 0;
  using Metadata = std::shared_ptr<const arrow::KeyValueMetadata>;
  const Metadata metadata = *need_answer(uri, "look at", [&]() -> arrow::Result<Metadata> {
    // By its path, for a file that is opened by a listing is not asked about.
    ARROW_ASSIGN_OR_RAISE(const auto file, object.root.files->OpenInputFile(object.info.path()));
    ARROW_ASSIGN_OR_RAISE(size, file->GetSize());
    return file->ReadMetadata();
  });
  if (size != object.info.size())
    fail_for_now("{}: the store lists it with {} bytes, but it has {}; rerun the same command", uri,
                 object.info.size(), size);
  for (int64_t i = 0; metadata && i < metadata->size(); ++i)
    if (small_letters(metadata->key(i)) == "etag") return metadata->value(i);
  return {};
}

class ArrowStore : public Store {
 public:
  explicit ArrowStore(const std::string& uri) : uri_(parse_store_uri(uri)), root_(open_root(uri_)) {}

  std::string name() const override { return uri_.name(); }

  std::map<std::string, FileIdentity> list() override {
    std::map<std::string, FileIdentity> files;
    for (const stores::FileInfo& info : list_folder(root_, uri_.key, false, name()))
      if (info.IsFile()) files.emplace(info.base_name(), identity_of(info));
    return files;
  }

  std::optional<FileIdentity> identify(const std::string& file) override {
    const stores::FileInfo info = ask_about(root_, key(file), named(file));
    if (!info.IsFile()) return std::nullopt;
    FileIdentity identity = identity_of(info);
    identity.etag = etag_of({root_, info}, named(file));
    return identity;
  }

  bool read_pieces(const std::string& file, const std::function<void(std::string_view)>& take) override {
    const stores::FileInfo info = ask_about(root_, key(file), named(file));
    if (!info.IsFile()) return false;
    const auto from = open_listed({root_, info}, named(file));
    std::string piece(static_cast<size_t>(std::min(kPiece, info.size())), '\0');
    for (int64_t at = 0; at < info.size();) {
      const auto count = from->Read(std::min(kPiece, info.size() - at), piece.data());
      if (!count.ok()) give_up(named(file), "read", count.status());
      take({piece.data(), static_cast<size_t>(*count)});
      at += *count;
    }
    return true;
  }

  void put(const std::string& file, std::string_view text) override {
    write(file, static_cast<int64_t>(text.size()), [&](arrow::io::OutputStream& to) {
      return to.Write(text.data(), static_cast<int64_t>(text.size()));
    });
  }

  void put_file(const std::string& file, const std::string& local, const std::string& sha256) override {
    const auto size = file_size(local);
    if (!size) fail("{}: the file is gone", local);
    write(file, *size, [&](arrow::io::OutputStream& to) {
      arrow::Status status;
      Sha256 sum;
      sheaf::read_pieces(local, [&](std::string_view piece) {
        if (status.ok()) status = to.Write(piece.data(), static_cast<int64_t>(piece.size()));
        if (!sha256.empty()) sum.add(piece);
      });
      if (!sha256.empty() && sum.hex() != sha256)
        refuse("{}: the file does not match its manifest; run the job again with --restart", local);
      return status;
    });
  }

  void remove(const std::string& file) override {
    if (!ask_about(root_, key(file), named(file)).IsFile()) return;
    // Arrow then puts a mark where S3 would have a folder, which not every server takes. The file is gone.
    const std::string path = path_in(root_, key(file));
    (void)need_answer(named(file), "remove", [&]() -> arrow::Status {
      const arrow::Status done = root_.files->DeleteFile(path);
      ARROW_ASSIGN_OR_RAISE(const stores::FileInfo info, root_.files->GetFileInfo(path));
      return info.IsFile() ? done : arrow::Status::OK();
    });
  }

 private:
  std::string key(const std::string& file) const { return uri_.key.empty() ? file : uri_.key + "/" + file; }
  std::string named(const std::string& file) const { return name() + "/" + file; }

  /// From the beginning until it is whole: a stream that broke off is of no use.
  template <class Fill>
  void write(const std::string& file, int64_t size, Fill&& fill) {
    const bool has_folders = root_.files->type_name() == "local" || root_.files->type_name() == "hdfs";
    const std::string path = path_in(root_, key(file));
    (void)need_answer(named(file), "write", [&]() -> arrow::Status {
      if (has_folders) ARROW_RETURN_NOT_OK(root_.files->CreateDir(path_in(root_, uri_.key), true));
      ARROW_ASSIGN_OR_RAISE(const auto to, root_.files->OpenOutputStream(path));
      arrow::Status done;
      try {
        done = fill(*to);
      } catch (...) {
        (void)to->Abort();
        throw;
      }
      if (!done.ok()) {
        (void)to->Abort();
        return done;
      }
      ARROW_RETURN_NOT_OK(to->Close());
      ARROW_ASSIGN_OR_RAISE(const stores::FileInfo info, root_.files->GetFileInfo(path));
      if (info.size() == size) return arrow::Status::OK();
      return arrow::Status::IOError(fmt::format("it has {} bytes there in place of {}", info.size(), size));
    });
  }

  StoreUri uri_;
  Root root_;
};

}  // namespace

std::vector<std::string> list_corpus_uris(const std::string& uri, const std::string& where) {
  const StoreUri parts = parse_store_uri(uri, where);
  const Root root = open_root(parts);
  std::vector<stores::FileInfo> found;
  const auto known_ending = [&](const stores::FileInfo& info, size_t base) {
    return corpus_format(info.path()) != CorpusFormat::unknown &&
           !is_hidden(std::string_view(key_in(root, info.path())).substr(base));
  };
  if (parts.has_wildcards()) {
    const size_t wildcard = parts.key.find_first_of("*["), slash = parts.key.rfind('/', wildcard);
    const bool deeper = parts.key.find('/', wildcard) != std::string::npos;
    const std::string base = slash == std::string::npos ? "" : parts.key.substr(0, slash);
    for (stores::FileInfo& info : list_folder(root, base, deeper, parts.name()))
      if (info.IsFile() &&
          ::fnmatch(parts.key.c_str(), key_in(root, info.path()).c_str(), FNM_PATHNAME | FNM_PERIOD) == 0)
        found.push_back(std::move(info));
  } else {
    const stores::FileInfo self = ask_about(root, parts.key, parts.name());
    if (self.IsFile()) found.push_back(self);
    if (self.IsDirectory())
      for (stores::FileInfo& info : list_folder(root, parts.key, true, parts.name()))
        if (info.IsFile() && known_ending(info, parts.key.empty() ? 0 : parts.key.size() + 1))
          found.push_back(std::move(info));
  }
  StoreUri file = parts;
  std::vector<std::string> uris;
  Opened& all = opened();
  const std::lock_guard lock(all.mutex);
  for (stores::FileInfo& info : found) {
    file.key = key_in(root, info.path());
    uris.push_back(file.name());
    all.listed.insert_or_assign(uris.back(), Listed{root, std::move(info)});
  }
  std::ranges::sort(uris);
  return uris;
}

FileIdentity listed_object(const std::string& uri) {
  return identity_of(find_listed(uri).info);
}

std::vector<FileIdentity> identify_objects(const std::vector<std::string>& uris) {
  std::vector<FileIdentity> objects(uris.size());
  const auto count = std::ssize(uris);
  ThreadPool(static_cast<int>(std::clamp<int64_t>(count, 1, kAskedAtOnce))).run(count, [&](int64_t i, int) {
    const auto at = static_cast<size_t>(i);
    const Listed object = find_listed(uris[at]);
    objects[at] = identity_of(object.info);
    objects[at].etag = etag_of(object, uris[at]);
  });
  return objects;
}

std::optional<std::string> Store::read(const std::string& file) {
  std::string text;
  const bool there = read_pieces(file, [&](std::string_view piece) {
    if (std::ssize(text) + std::ssize(piece) > kLargestText)
      refuse("{}/{}: the file has more than {} MB", name(), file, kLargestText >> 20);
    text += piece;
  });
  return there ? std::optional(std::move(text)) : std::nullopt;
}

std::shared_ptr<arrow::io::RandomAccessFile> open_store_file(const std::string& uri) {
  Opened& all = opened();
  forget_unread(uri);
  {
    const std::lock_guard lock(all.mutex);
    if (const auto begun = all.expected.find(uri); begun != all.expected.end()) {
      auto file = std::move(begun->second);
      all.expected.erase(begun);
      return file;
    }
  }
  return open_listed(find_listed(uri), uri);
}

void expect_store_file(const std::string& uri) {
  Opened& all = opened();
  const std::lock_guard lock(all.mutex);
  const auto known = all.listed.find(uri);
  if (known == all.listed.end() || all.expected.contains(uri) || all.expected.size() >= kMostExpected) return;
  auto made = known->second.root.files->OpenInputFile(known->second.info);
  if (!made.ok()) return;  // whoever opens it will tell
  all.expected[uri] = read_ahead(std::move(made).ValueUnsafe(), known->second.info.size(), uri);
}

std::unique_ptr<Store> open_store(const std::string& uri) {
  return std::make_unique<ArrowStore>(uri);
}

void close_stores() {
  Opened& all = opened();
  const std::lock_guard lock(all.mutex);
  if (!all.started) return;  // in Python, others may use S3
  all.expected.clear();
  all.listed.clear();
  all.roots.clear();
#ifdef ARROW_S3
  if (stores::IsS3Initialized()) (void)stores::EnsureS3Finalized();
#endif
}

}  // namespace sheaf
