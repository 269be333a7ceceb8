#pragma once
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "core/base/error.h"
#include "io/base/file_identity.h"
#include "io/base/store_uri.h"

namespace arrow::io {
class RandomAccessFile;
}

namespace sheaf {

/// A store cannot be reached now; the same command may succeed later.
class StoreUnreachable : public Error {
 public:
  explicit StoreUnreachable(const std::string& message) : Error(Fault::retry, message) {}
};

// Files by URI, through Arrow's file systems. Nothing of Arrow's is started before the first one is used.

/// The URIs that a corpus path names, sorted: a file, those below a folder whose names end as corpus_format()
/// knows them, or what matches wildcards. Empty where nothing is there.
std::vector<std::string> list_corpus_uris(const std::string& uri, const std::string& where = {});

/// Size and time of an object as the last listing had them, or as the store says.
FileIdentity listed_object(const std::string& uri);
/// Sizes, times and ETags of objects; the store is asked about each, because listings have no ETags.
std::vector<FileIdentity> identify_objects(const std::vector<std::string>& uris);

/// Opens a file to be read, with the next parts on their way. Refuses one that is not there.
std::shared_ptr<arrow::io::RandomAccessFile> open_store_file(const std::string& uri);
/// A file of a store that has the next blocks on their way while the earlier ones are used, so that reading
/// does not wait for every answer of the store. Several places may be read by turns, as the columns of a
/// Parquet file are. Memory is bounded (64 MB). `size`: of the file, which must not change. A block that
/// cannot be read is asked for again (store_retry.h).
std::shared_ptr<arrow::io::RandomAccessFile> read_ahead(std::shared_ptr<arrow::io::RandomAccessFile> file,
                                                        int64_t size, std::string name);
/// Begins to read a file that will be opened soon. For files of a listing.
void expect_store_file(const std::string& uri);

/// The files right under a URI. What cannot be done throws: StoreUnreachable, or a refusal with what the
/// store said.
class Store {
 public:
  virtual ~Store() = default;
  /// How messages call it.
  virtual std::string name() const = 0;
  /// By name, with size and time.
  virtual std::map<std::string, FileIdentity> list() = 0;
  /// With its ETag, where the store has one; nothing where there is no such file.
  virtual std::optional<FileIdentity> identify(const std::string& file) = 0;
  /// False where there is no such file.
  virtual bool read_pieces(const std::string& file, const std::function<void(std::string_view)>& take) = 0;
  /// A small file; nothing where there is none.
  std::optional<std::string> read(const std::string& file);
  /// Puts a whole file under its name, which leads to all of it or to what was there before.
  virtual void put(const std::string& file, std::string_view text) = 0;
  /// Puts a file of this machine. Refuses it, and puts nothing, where its SHA-256 is another one (empty:
  /// any).
  virtual void put_file(const std::string& file, const std::string& local, const std::string& sha256) = 0;
  /// An absent file is fine.
  virtual void remove(const std::string& file) = 0;
};
std::unique_ptr<Store> open_store(const std::string& uri);

/// Ends what was started for stores; before main() returns.
void close_stores();

/// Who is told, on any thread, that a store has not answered for a second, and again every minute.
void tell_of_waiting(void (*tell)(std::string_view text));

}  // namespace sheaf
