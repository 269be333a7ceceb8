#pragma once
#include <string>
#include <string_view>

namespace sheaf {

/// Whether a path is a URI (s3://bucket/key), which leads to a store and not to a local file.
bool is_uri(std::string_view path);

/// The parts of a store's URI. Keys are taken as they are written: %20 stands for itself.
struct StoreUri {
  std::string scheme;     ///< s3, gs, az, abfs, abfss, hdfs, file
  std::string authority;  ///< the bucket, or the server; empty for file
  std::string key;        ///< without a slash in front; may have the wildcards * and [a-z]
  std::string query;      ///< what follows "?", such as region=eu-west-1; empty: none

  /// "s3://bucket/key", by which messages, rejects and reports call it.
  std::string name() const;
  /// The root of the store, as Arrow wants to have it.
  std::string root() const;
  bool has_wildcards() const { return key.find_first_of("*[") != std::string::npos; }
};

/// Refuses a scheme that sheaf does not know, and credentials, which do not belong into job files, logs and
/// reports. `where` ("job.yaml:3: input.path: ") begins the message.
StoreUri parse_store_uri(const std::string& uri, const std::string& where = {});

}  // namespace sheaf
