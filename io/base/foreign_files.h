#pragma once
#include <string>
#include <string_view>

namespace sheaf {

// What to do about a path that leads to nothing sheaf reads. Commands are for a shell, in one line.

/// Why nothing can be read at `path`, which does not exist or cannot be seen: a URL, no permission, no such
/// file or folder.
std::string describe_missing(const std::string& path);

enum class Hosted { model, adapter, dataset };

/// How to get the default model, or to download what the `name` of a Hugging Face repository may stand for;
/// empty for other names.
std::string download_advice(std::string_view name, Hosted what);

/// How to make JSON lines of a file that sheaf does not read, by the ending of its name (.xlsx, .json, .pdf,
/// .docx, .html); empty for other endings.
std::string convert_advice(const std::string& path);

/// How to make safetensors of the PyTorch weights (.bin, .pt, .pth) of a model folder.
std::string convert_weights(const std::string& folder);

/// How to make UTF-8 of a text file in another encoding.
std::string convert_text(const std::string& path, std::string_view encoding);
/// How to make LF of the CR that ends the lines of a file.
std::string convert_line_ends(const std::string& path);

/// What a file named as CSV is instead, UTF-16 among others, and what to do; empty where it may be CSV.
std::string describe_no_csv(const std::string& path, std::string_view first);

/// What a file of JSON lines is instead, by its `first` bytes, and how to convert it: UTF-16, a JSON array,
/// objects over several lines, Parquet, CSV. Empty where they do not tell. `first` must not be of a file that
/// has JSON lines.
std::string describe_foreign(const std::string& path, std::string_view first);

/// What a file named as Parquet is instead, and how to convert it; empty for one that begins as Parquet.
std::string describe_no_parquet(const std::string& path, std::string_view first);

}  // namespace sheaf
