#include "io/passages/passage_index.h"

#include <algorithm>
#include <arrow/util/hashing.h>  // brings xxHash, whose version in Arrow every build has
#include <cmath>
#include <cstring>
#include <set>

#include "core/task/relevance.h"
#include "core/text/utf8.h"
#include "core/text/words.h"
#include "io/base/json_file.h"

namespace sheaf {
namespace {

// Sums of the same numbers in another order differ by less.
constexpr double kSlack = 1e-9;

/// The score of the `count`th best; 0 where there are fewer.
double score_to_beat(const std::vector<PassageIndex::Found>& found, size_t count) {
  if (found.size() < count || count == 0) return 0;
  std::vector<double> scores;
  scores.reserve(found.size());
  for (const auto& each : found) scores.push_back(each.score);
  const auto last = scores.begin() + static_cast<ptrdiff_t>(count - 1);
  std::nth_element(scores.begin(), last, scores.end(), std::greater<>());
  return *last;
}

}  // namespace

uint64_t sum64(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

uint32_t passage_sum(const PassageEntry& entry, std::span<const std::byte> bytes) {
  const uint64_t fields = XXH3_64bits(&entry, offsetof(PassageEntry, sum));
  return static_cast<uint32_t>(XXH3_64bits_withSeed(bytes.data(), bytes.size(), fields));
}

/// The postings of a word, one after the other. Nothing that it reads is trusted, sums or not.
class PassageIndex::Postings {
 public:
  Postings(const PassageIndex& index, const TermEntry& entry)
      : index_(index), total_(entry.passages), left_(total_), passages_(index.passages()) {
    std::span<const std::byte> bytes = index.part(entry.at, entry.bytes, "postings");
    std::atomic<bool>& checked = index.checked_[static_cast<size_t>(&entry - index.terms_.data())];
    if (!checked.load(std::memory_order_relaxed)) {
      if (static_cast<uint32_t>(sum64(bytes)) != entry.sum) index.damaged("postings are damaged");
      checked.store(true, std::memory_order_relaxed);
    }
    if (entry.passages > kBlock) {
      const size_t table = (entry.passages + kBlock - 1) / kBlock * sizeof(PostingBlock);
      if (table > bytes.size() || entry.at % alignof(PostingBlock) != 0)
        index.damaged("postings are cut short");
      blocks_ = {reinterpret_cast<const PostingBlock*>(bytes.data()), table / sizeof(PostingBlock)};
      bytes = bytes.subspan(table);
    }
    begin_ = at_ = reinterpret_cast<const unsigned char*>(bytes.data());
    end_ = begin_ + bytes.size();
  }

  /// The next posting, in passage() and times(); false at the end.
  bool next() {
    if (left_ == 0) return false;
    --left_;
    const uint64_t distance = number();
    if (distance == 0 || distance > passages_ || (next_ += distance) > passages_)
      index_.damaged("postings name passages that are not there");
    times_ = static_cast<uint32_t>(std::min<uint64_t>(number(), UINT32_MAX));
    return true;
  }
  /// Moves to the first posting at or behind a passage; false at the end.
  bool seek(uint32_t passage) {
    skip_blocks(passage);
    while (next_ <= passage)
      if (!next()) return false;
    return true;
  }

  uint32_t passage() const { return static_cast<uint32_t>(next_ - 1); }
  uint32_t times() const { return times_; }

 private:
  /// Passes over the blocks that end before a passage.
  void skip_blocks(uint32_t passage) {
    const size_t before = block_;
    while (block_ < blocks_.size() && blocks_[block_].last < passage) ++block_;
    if (block_ == before) return;
    const PostingBlock& done = blocks_[block_ - 1];
    const uint32_t behind = block_ == blocks_.size() ? 0 : total_ - static_cast<uint32_t>(block_) * kBlock;
    if (behind >= left_) return;  // it is further already
    if (done.end > static_cast<size_t>(end_ - begin_) || done.last >= passages_)
      index_.damaged("postings point outside");
    at_ = begin_ + done.end;
    next_ = uint64_t{done.last} + 1;
    left_ = behind;
  }

  uint64_t number() {
    uint64_t value = 0;
    for (int shift = 0; shift < 35; shift += 7) {
      if (at_ == end_) index_.damaged("postings are cut short");
      const unsigned char byte = *at_++;
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    index_.damaged("a number in postings has no end");
  }

  const PassageIndex& index_;
  std::span<const PostingBlock> blocks_;
  size_t block_ = 0;
  uint32_t total_, left_;
  uint64_t passages_, next_ = 0;  ///< one more than the current passage
  uint32_t times_ = 0;
  const unsigned char *begin_, *at_, *end_;
};

PassageIndex::PassageIndex(const std::string& path) : file_(MappedFile::open(path)) {
  const std::span<const std::byte> bytes = file_->bytes();
  if (bytes.size() < sizeof tail_) damaged("it is too short");
  if (file_->text().substr(0, kIndexMagic.size()) != kIndexMagic)
    damaged("this is not an index of passages, or another version of sheaf wrote it");
  std::memcpy(&tail_, bytes.data() + (bytes.size() - sizeof tail_), sizeof tail_);
  if (std::string_view(tail_.magic.data(), tail_.magic.size()) != kIndexMagic) damaged("it was cut short");
  constexpr size_t summed = offsetof(IndexTail, file_bytes);
  if (tail_.tail_sum != sum64(std::as_bytes(std::span(&tail_, 1)).subspan(summed)))
    damaged("its tail is damaged");
  if (tail_.file_bytes != bytes.size()) damaged("it was cut short or is longer than it was");
  if (tail_.passages == 0 || tail_.passages > kMostPassages) damaged("its number of passages is impossible");
  lengths_ = section<uint32_t>(tail_.lengths, tail_.passages, "lengths");
  entries_ = section<PassageEntry>(tail_.entries, tail_.passages, "entries");
  terms_ = section<TermEntry>(tail_.term_entries, tail_.terms, "terms");
  const auto words = section<char>(tail_.term_words, tail_.term_words.bytes, "words");
  words_ = {words.data(), words.size()};
  const auto about = section<char>(tail_.about, tail_.about.bytes, "description");
  try {
    about_ = parse_json({about.data(), about.size()}, path);
  } catch (const Error&) {
    damaged("its description is damaged");
  }
  mean_words_ = std::max(1.0, static_cast<double>(tail_.words) / static_cast<double>(tail_.passages));
  checked_ = std::vector<std::atomic<bool>>(terms_.size());
}

void PassageIndex::damaged(std::string_view what) const {
  throw BadIndex(file_->path(), what);
}

std::span<const std::byte> PassageIndex::part(uint64_t at, uint64_t bytes, std::string_view what) const {
  const uint64_t all = file_->bytes().size();
  if (at > all || bytes > all - at) damaged(fmt::format("its {} lie outside of it", what));
  return file_->bytes().subspan(at, bytes);
}

template <class Value>
std::span<const Value> PassageIndex::section(const IndexSection& section, uint64_t count,
                                             std::string_view what) const {
  const std::span<const std::byte> bytes = part(section.at, section.bytes, what);
  if (section.at % 8 != 0 || count > bytes.size() || bytes.size() != count * sizeof(Value))
    damaged(fmt::format("its {} have another size than they should", what));
  if (section.sum != 0 && section.sum != sum64(bytes)) damaged(fmt::format("its {} are damaged", what));
  return {reinterpret_cast<const Value*>(bytes.data()), count};
}

std::string_view PassageIndex::word(const TermEntry& entry) const {
  if (entry.word_at > words_.size() || entry.word_bytes > words_.size() - entry.word_at)
    damaged("a word lies outside of it");
  return words_.substr(entry.word_at, entry.word_bytes);
}

const TermEntry* PassageIndex::find(std::string_view text) const {
  const auto found = std::ranges::lower_bound(terms_, text, {}, [&](const TermEntry& e) { return word(e); });
  if (found == terms_.end() || word(*found) != text) return nullptr;
  if (found->passages == 0 || found->passages > tail_.passages) damaged("a word's count is impossible");
  return &*found;
}

std::vector<PassageIndex::Word> PassageIndex::words_of(std::string_view question) const {
  std::set<std::string, std::less<>> different;
  each_word(question, [&](std::string_view each) {
    if (!different.contains(each)) different.emplace(each);
  });
  std::vector<Word> words;
  for (const std::string& each : different)
    if (const TermEntry* const entry = find(each))
      words.push_back({entry, word_rarity(static_cast<double>(tail_.passages), entry->passages)});
  std::ranges::stable_sort(words, {}, [](const Word& each) { return each.entry->passages; });
  return words;
}

double PassageIndex::weight(uint32_t passage, uint32_t times) const {
  return word_weight(times, length_norm(lengths_[passage], mean_words_));
}

void PassageIndex::add_all(const Word& word, std::vector<Found>& found) const {
  std::vector<Found> all;
  all.reserve(found.size() + word.entry->passages);
  auto known = found.begin();
  for (Postings postings(*this, *word.entry); postings.next();) {
    const uint32_t passage = postings.passage();
    while (known != found.end() && known->passage < passage) all.push_back(*known++);
    const double before = known != found.end() && known->passage == passage ? known++->score : 0;
    all.push_back({passage, before + word.rarity * weight(passage, postings.times())});
  }
  all.insert(all.end(), known, found.end());
  found = std::move(all);
}

void PassageIndex::add_to(const Word& word, std::vector<Found>& found) const {
  Postings postings(*this, *word.entry);
  for (Found& each : found) {
    if (!postings.seek(each.passage)) return;
    if (postings.passage() == each.passage)
      each.score += word.rarity * weight(each.passage, postings.times());
  }
}

std::vector<PassageIndex::Found> PassageIndex::search(std::string_view question, size_t count) const {
  const std::vector<Word> words = words_of(question);
  // What the words from one on can add to a score.
  std::vector<double> ahead(words.size() + 1, 0);
  for (size_t i = words.size(); i-- > 0;)
    ahead[i] = ahead[i + 1] + words[i].rarity * static_cast<double>(words[i].entry->most);
  std::vector<Found> found;
  bool closed = false;  // no passage that has none of the words so far can be among the best
  for (size_t i = 0; i < words.size(); ++i) {
    const double beat = i > 0 ? score_to_beat(found, count) * (1 - kSlack) : 0;
    closed = closed || ahead[i] * (1 + kSlack) < beat;
    if (!closed) {
      add_all(words[i], found);
      continue;
    }
    std::erase_if(found, [&](const Found& each) { return (each.score + ahead[i]) * (1 + kSlack) < beat; });
    add_to(words[i], found);
  }
  const auto best = found.begin() + static_cast<ptrdiff_t>(std::min(count, found.size()));
  std::partial_sort(found.begin(), best, found.end(), [](const Found& a, const Found& b) {
    return a.score != b.score ? a.score > b.score : a.passage < b.passage;
  });
  found.erase(best, found.end());
  return found;
}

std::vector<double> PassageIndex::scores(std::string_view question,
                                         std::span<const uint32_t> passages) const {
  std::vector<Found> found;
  for (const uint32_t passage : passages) found.push_back({passage, 0});
  for (const Word& word : words_of(question)) add_to(word, found);
  std::vector<double> scores;
  for (const Found& each : found) scores.push_back(each.score);
  return scores;
}

Passage PassageIndex::passage(uint32_t number) const {
  const PassageEntry& entry = entries_[number];
  const std::span<const std::byte> bytes = part(entry.at, entry.bytes, "texts");
  if (passage_sum(entry, bytes) != entry.sum) damaged(fmt::format("passage {} is damaged", number + 1));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (entry.id_bytes > text.size() || entry.title_bytes > text.size() - entry.id_bytes ||
      valid_prefix(text) != text.size())
    damaged(fmt::format("passage {} is damaged", number + 1));
  Passage passage{nullptr, std::string(text.substr(entry.id_bytes, entry.title_bytes)),
                  std::string(text.substr(size_t{entry.id_bytes} + entry.title_bytes))};
  try {
    passage.id = parse_record(text.substr(0, entry.id_bytes), JsonLimits{});
  } catch (const BadText&) {
    damaged(fmt::format("passage {} has no sound id", number + 1));
  }
  return passage;
}

}  // namespace sheaf
