#include "io/passages/build_index.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <queue>
#include <thread>
#include <unordered_map>

#include "core/base/bounded_queue.h"
#include "core/base/random_stream.h"
#include "core/task/relevance.h"
#include "core/text/spelling.h"
#include "io/base/file_layer.h"
#include "io/base/scratch_file.h"
#include "io/passages/invert_passages.h"

namespace sheaf {
namespace {

using nlohmann::json;

constexpr size_t kBatchBytes = 16 << 20;   // of texts that are inverted together
constexpr size_t kWrittenBytes = 4 << 20;  // at once
constexpr size_t kMostLeftOutText = 300;   // characters

std::string_view raw(const auto& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

/// The file being written.
class IndexWriter {
 public:
  IndexWriter(const std::string& path, const std::atomic<bool>& stop)
      : file_(real_files().open(path)), stop_(stop) {
    file_->truncate(0);
    append(kIndexMagic);
  }

  uint64_t at() const { return written_ + buffer_.size(); }
  void append(std::string_view bytes) {
    buffer_ += bytes;
    if (buffer_.size() < kWrittenBytes) return;
    file_->append(buffer_);
    written_ += buffer_.size();
    buffer_.clear();
    check_stop();
  }
  void check_stop() const {
    if (stop_) fail_for_now("interrupted while making an index of passages");
  }
  void append(std::span<const std::byte> bytes) {
    append({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  void align() { append(std::string((8 - at() % 8) % 8, '\0')); }
  /// Adds a section that is checked as a whole.
  IndexSection add(std::span<const std::byte> bytes) {
    align();
    const IndexSection section{at(), bytes.size(), sum64(bytes)};
    for (size_t done = 0; done < bytes.size(); done += kWrittenBytes)
      append(bytes.subspan(done, std::min(kWrittenBytes, bytes.size() - done)));
    return section;
  }
  /// Makes the file whole and durable.
  void finish(IndexTail tail) {
    tail.file_bytes = at() + sizeof tail;
    constexpr size_t summed = offsetof(IndexTail, file_bytes);
    tail.tail_sum = sum64(std::as_bytes(std::span(&tail, 1)).subspan(summed));
    buffer_ += raw(tail);
    file_->append(buffer_);
    file_->sync();
  }

 private:
  std::unique_ptr<OutputFile> file_;
  const std::atomic<bool>& stop_;
  std::string buffer_;
  uint64_t written_ = 0;
};

std::span<const std::byte> mapped(ScratchFile& file) {
  if (file.size() == 0) return {};
  return file.map(file.size());
}

struct PassageBatch {
  size_t number = 0;
  std::vector<std::string> texts;
};

/// Inverts batches of passages in threads of its own, and keeps what they give.
class Inverter {
 public:
  Inverter(const std::string& near, int threads) : terms_(near), batches_(1) {
    for (int i = 0; i < std::max(1, threads); ++i) threads_.emplace_back([this] { work(); });
  }
  ~Inverter() { batches_.close(); }

  void add(PassageBatch batch) {
    if (!batches_.push(std::move(batch))) finish();
  }
  /// Waits for all batches. Throws what went wrong in a thread.
  void finish() {
    batches_.close();
    threads_.clear();
    if (trouble_) std::rethrow_exception(trouble_);
  }

  struct Done {
    std::vector<uint32_t> lengths;
    int64_t at = 0, bytes = 0;  // of the terms in the file
  };
  const std::map<size_t, Done>& done() const { return done_; }
  ScratchFile& terms() { return terms_; }

 private:
  void work() try {
    while (auto batch = batches_.pop()) {
      InvertedPassages inverted = invert_passages(batch->texts);
      const std::lock_guard lock(mutex_);
      done_[batch->number] = {std::move(inverted.lengths), terms_.size(), std::ssize(inverted.terms)};
      terms_.append(inverted.terms);
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    trouble_ = std::current_exception();
    batches_.close();
  }

  std::mutex mutex_;
  ScratchFile terms_;
  std::map<size_t, Done> done_;
  std::exception_ptr trouble_;
  BoundedQueue<PassageBatch> batches_;
  std::vector<std::jthread> threads_;
};

/// Brings the words of all batches together, word by word.
class Merger {
 public:
  Merger(IndexWriter& writer, const std::string& near) : writer_(writer), entries_(near), words_(near) {}

  void merge(Inverter& inverted, const std::vector<uint32_t>& lengths, double mean_words) {
    const std::string_view terms = text_of(mapped(inverted.terms()));
    std::vector<InvertedWords> batches;
    uint32_t first = 0;
    for (const auto& [number, done] : inverted.done()) {
      batches.emplace_back(terms.substr(static_cast<size_t>(done.at), static_cast<size_t>(done.bytes)),
                           first);
      first += static_cast<uint32_t>(done.lengths.size());
    }
    const auto later = [&](size_t a, size_t b) {
      const int order = batches[a].word().compare(batches[b].word());
      return order != 0 ? order > 0 : a > b;
    };
    std::priority_queue<size_t, std::vector<size_t>, decltype(later)> next(later);
    for (size_t i = 0; i < batches.size(); ++i)
      if (batches[i].next()) next.push(i);
    std::vector<InvertedWords::Posting> postings;
    while (!next.empty()) {
      const std::string_view word = batches[next.top()].word();
      postings.clear();
      while (!next.empty() && batches[next.top()].word() == word) {
        const size_t batch = next.top();
        next.pop();
        batches[batch].append_postings(postings);
        if (batches[batch].next()) next.push(batch);
      }
      add(word, postings, lengths, mean_words);
    }
  }

  uint64_t terms() const { return terms_; }
  ScratchFile& entries() { return entries_; }
  ScratchFile& words() { return words_; }

 private:
  static std::string_view text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  void add(std::string_view word, std::span<const InvertedWords::Posting> postings,
           const std::vector<uint32_t>& lengths, double mean_words) {
    std::vector<PostingBlock> blocks;
    std::string data;
    double most = 0;
    int64_t before = -1;
    for (size_t i = 0; i < postings.size(); ++i) {
      const auto [passage, times] = postings[i];
      append_number(data, static_cast<uint64_t>(passage - before));
      append_number(data, times);
      before = passage;
      most = std::max(most, word_weight(times, length_norm(lengths[passage], mean_words)));
      if (postings.size() > kBlock && ((i + 1) % kBlock == 0 || i + 1 == postings.size())) {
        if (data.size() > UINT32_MAX)
          fail("the word {} is too frequent for an index", shorten_text(word, 60));
        blocks.push_back({passage, static_cast<uint32_t>(data.size())});
      }
    }
    const std::string_view table(reinterpret_cast<const char*>(blocks.data()),
                                 blocks.size() * sizeof(PostingBlock));
    data.insert(0, table);
    if (!blocks.empty()) writer_.align();
    const TermEntry entry{static_cast<uint64_t>(words_.size() + std::ssize(waiting_words_)),
                          writer_.at(),
                          data.size(),
                          static_cast<uint32_t>(word.size()),
                          static_cast<uint32_t>(postings.size()),
                          static_cast<uint32_t>(sum64(std::as_bytes(std::span(data)))),
                          std::nextafter(static_cast<float>(most), 4.0f)};
    writer_.append(data);
    waiting_words_ += word;
    waiting_entries_ += raw(entry);
    ++terms_;
    if (waiting_entries_.size() >= kWrittenBytes) flush();
  }

 public:
  void flush() {
    words_.append(waiting_words_);
    entries_.append(waiting_entries_);
    waiting_words_.clear();
    waiting_entries_.clear();
  }

 private:
  IndexWriter& writer_;
  ScratchFile entries_, words_;
  std::string waiting_entries_, waiting_words_;
  uint64_t terms_ = 0;
};

/// Passages that could not be read.
struct LeftOut {
  int64_t rows = 0;
  std::string first;  // its place and why
};

/// Reads all passages: writes their texts and hands them over to be inverted.
LeftOut take_passages(PassageReader& passages, IndexWriter& writer, Inverter& inverter,
                      ScratchFile& entries) {
  LeftOut left_out;
  PassageBatch batch;
  size_t batch_bytes = 0;
  int64_t count = 0;
  std::string waiting;
  std::unordered_map<uint64_t, std::pair<size_t, int64_t>> first_of;  // file and row, by the hash of the id
  while (auto row = passages.next()) {
    writer.check_stop();
    if (row->passage) {
      const std::string id = row->passage->id.dump();
      const auto [first, fresh] =
          first_of.emplace(mix(hash_text(id), id.size()), std::pair(row->file, row->number));
      if (!fresh) {
        row->passage.reset();
        row->trouble =
            fmt::format("{}: its id {} is that of {} too", passages.place(row->file, row->number),
                        shorten_text(id, 60), passages.place(first->second.first, first->second.second));
      }
    }
    if (!row->passage) {
      if (left_out.rows == 0) left_out.first = shorten_text(row->trouble, kMostLeftOutText);
      left_out.rows += row->rows;
      continue;
    }
    if (++count > kMostPassages) refuse("an index holds at most {} passages", kMostPassages);
    const std::string id = row->passage->id.dump();
    const std::string text = id + row->passage->title + row->passage->text;
    PassageEntry entry{writer.at(), static_cast<uint32_t>(text.size()), static_cast<uint32_t>(id.size()),
                       static_cast<uint32_t>(row->passage->title.size()), 0};
    entry.sum = passage_sum(entry, std::as_bytes(std::span(text)));
    writer.append(text);
    waiting += raw(entry);
    if (waiting.size() >= kWrittenBytes) {
      entries.append(waiting);
      waiting.clear();
    }
    batch.texts.push_back(row->passage->document());
    batch_bytes += text.size();
    if (batch_bytes < kBatchBytes) continue;
    const size_t number = batch.number + 1;
    inverter.add(std::exchange(batch, {number, {}}));
    batch_bytes = 0;
  }
  entries.append(waiting);
  if (!batch.texts.empty()) inverter.add(std::move(batch));
  return left_out;
}

}  // namespace

void build_index(PassageReader& passages, const std::string& corpus, json about, const std::string& path,
                 int threads, const std::atomic<bool>& stop) {
  IndexWriter writer(path, stop);
  IndexTail tail{};
  std::memcpy(tail.magic.data(), kIndexMagic.data(), kIndexMagic.size());
  ScratchFile entries(path);
  Inverter inverter(path, threads);
  tail.texts.at = writer.at();
  const LeftOut left_out = take_passages(passages, writer, inverter, entries);
  inverter.finish();
  tail.texts.bytes = writer.at() - tail.texts.at;
  std::vector<uint32_t> lengths;
  for (const auto& [number, done] : inverter.done())
    lengths.insert(lengths.end(), done.lengths.begin(), done.lengths.end());
  if (lengths.empty())
    refuse("{} holds no passage that can be read{}{}", corpus, left_out.rows > 0 ? ": " : "", left_out.first);
  tail.passages = lengths.size();
  for (const uint32_t length : lengths) tail.words += length;
  writer.align();
  tail.postings.at = writer.at();
  Merger merger(writer, path);
  merger.merge(inverter, lengths,
               std::max(1.0, static_cast<double>(tail.words) / static_cast<double>(tail.passages)));
  merger.flush();
  tail.postings.bytes = writer.at() - tail.postings.at;
  tail.terms = merger.terms();
  tail.lengths = writer.add(bytes_of(lengths));
  tail.entries = writer.add(mapped(entries));
  tail.entries.sum = 0;
  tail.term_entries = writer.add(mapped(merger.entries()));
  tail.term_words = writer.add(mapped(merger.words()));
  about["left_out"] = {{"rows", left_out.rows}, {"first", left_out.first}};
  const std::string text = about.dump();
  tail.about = writer.add(std::as_bytes(std::span(text)));
  writer.align();
  writer.finish(tail);
}

}  // namespace sheaf
