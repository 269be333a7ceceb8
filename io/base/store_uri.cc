#include "io/base/store_uri.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ranges>

#include "core/base/error.h"
#include "core/text/spelling.h"
#include "core/text/utf8.h"
#include "io/base/foreign_files.h"

namespace sheaf {
namespace {

constexpr std::array<std::string_view, 8> kSchemes = {"s3",   "gs",    "gcs",  "az",
                                                      "abfs", "abfss", "hdfs", "file"};

bool is_secret(std::string_view name) {
  const std::string key = small_letters(std::string(name));
  for (const std::string_view word : {"secret", "key", "token", "password", "sig", "sas", "credential"})
    if (key.find(word) != std::string::npos && key != "credential_kind") return true;
  return false;
}

std::string variable_of(std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const char* value = std::getenv(name); value && *value) return value;
  return {};
}

/// Whether it holds what only its owner should know.
bool has_credentials(const StoreUri& uri) {
  const size_t at = uri.authority.find('@');
  const std::string user = at == std::string::npos ? "" : uri.authority.substr(0, at);
  if (user.find(':') != std::string::npos || (uri.scheme == "s3" && !user.empty())) return true;
  return std::ranges::any_of(std::views::split(uri.query, '&'), [](const auto& part) {
    const std::string_view pair(part.begin(), part.end());
    return is_secret(pair.substr(0, pair.find('=')));
  });
}

std::string where_credentials_belong(std::string_view scheme) {
  if (scheme == "s3") return "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile, or the machine's role";
  if (scheme == "gs" || scheme == "gcs") return "GOOGLE_APPLICATION_CREDENTIALS, or the machine's account";
  return "the environment that the store's own tools read";
}

}  // namespace

bool is_uri(std::string_view path) {
  const size_t end = path.find("://");
  if (end == std::string_view::npos || end == 0) return false;
  return std::ranges::all_of(path.substr(0, end), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' ||
           c == '.' || c == '-';
  });
}

std::string StoreUri::name() const {
  return scheme + "://" + authority + "/" + key;
}

std::string StoreUri::root() const {
  std::string base = scheme, at = authority;
  if (scheme == "az") {
    const std::string account = variable_of({"AZURE_STORAGE_ACCOUNT"});
    if (at.find('@') == std::string::npos && account.empty())
      refuse(
          "{}: the URI does not name the storage account; set the environment variable "
          "AZURE_STORAGE_ACCOUNT, "
          "or write abfs://{}@ACCOUNT.dfs.core.windows.net/{}",
          name(), authority, key);
    base = "abfs";
    if (at.find('@') == std::string::npos) at = account + "@" + at;
  }
  std::string settings = query;
  const auto add = [&](std::string_view name, const std::string& value) {
    if (value.empty() || ("&" + query).find(fmt::format("&{}=", name)) != std::string::npos) return;
    settings += fmt::format("{}{}={}", settings.empty() ? "" : "&", name, value);
  };
  // Else the SDK asks Amazon where the bucket is, and Google's tries for a quarter of an hour.
  if (scheme == "s3") add("region", variable_of({"AWS_REGION", "AWS_DEFAULT_REGION"}));
  if (scheme == "gs" || scheme == "gcs") {
    base = "gs";
    add("retry_limit_seconds", "15");
  }
  const bool plain = scheme == "file" || scheme == "hdfs";
  return base + "://" + at + (plain ? "/" : "") + (settings.empty() ? "" : "?" + settings);
}

StoreUri parse_store_uri(const std::string& uri, const std::string& where) {
  StoreUri parts;
  const size_t colon = uri.find("://");
  parts.scheme = uri.substr(0, colon);
  std::string rest = uri.substr(colon + 3);
  if (const size_t mark = rest.find('?'); mark != std::string::npos) {
    parts.query = rest.substr(mark + 1);
    rest.resize(mark);
  }
  const size_t slash = std::min(rest.find('/'), rest.size());
  parts.authority = rest.substr(0, slash);
  parts.key = rest.substr(std::min(slash + 1, rest.size()));
  while (parts.key.ends_with('/')) parts.key.pop_back();
  if (has_credentials(parts)) {
    // The place of an option repeats its value.
    const size_t repeated = where.rfind(uri);
    refuse(
        "{}the URI of {} has credentials in it, which would stand in logs and reports; leave them out, and "
        "set {}",
        repeated == std::string::npos ? where
                                      : where.substr(std::min(repeated + uri.size() + 2, where.size())),
        parts.scheme, where_credentials_belong(parts.scheme));
  }
  if (std::ranges::find(kSchemes, parts.scheme) == kSchemes.end())
    refuse("{}{}", where, describe_missing(uri));
  if (parts.scheme == "file" && !parts.authority.empty())
    refuse("{}{}: write file:///ABSOLUTE/PATH, with three slashes", where, uri);
  if (parts.authority.empty() && parts.scheme != "file" && parts.scheme != "hdfs")
    refuse("{}{}: the URI names no bucket; write {}://BUCKET/PATH", where, uri, parts.scheme);
  return parts;
}

}  // namespace sheaf
