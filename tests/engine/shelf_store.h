#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "core/engine/kv_store.h"

namespace sheaf::test {

/// Holds what it is given, by everything that decides it, and takes its time to hand it out.
class ShelfStore final : public KvStore {
 public:
  enum class Mood { ready, slow, broken, cut };

  explicit ShelfStore(KvForm form = KvForm::computed) : form_(form) {}

  KvForm form() const override { return form_; }
  KvKey key(const Segment& segment, std::span<const KvKey> seen, int32_t page_size) const override {
    std::string text = fmt::format("{} {} {}", page_size, segment.first_position, seen.size());
    for (const TokenId token : segment.tokens) text += fmt::format(" {}", token);
    for (size_t i = 0; i < seen.size(); ++i)
      text += fmt::format(" {} {}", segment.sees[i].abreast, static_cast<int>(seen[i][0]) + seen[i][1] * 256);
    const auto number = static_cast<uint32_t>(names_.try_emplace(text, names_.size()).first->second);
    return {static_cast<uint8_t>(number), static_cast<uint8_t>(number >> 8)};
  }
  std::shared_ptr<const KvFetch> fetch(const KvKey& key, int64_t bytes, int64_t, double) override {
    const auto at = shelf_.find(key);
    if (at == shelf_.end()) return nullptr;
    EXPECT_EQ(at->second.size, bytes);
    return std::make_shared<Fetch>(at->second, mood);
  }
  void expect(const KvKey& key, int64_t bytes, double) override {
    const auto at = shelf_.find(key);
    ++(at == shelf_.end() || at->second.size != bytes ? unknown : expected);
  }
  bool wants(const KvKey& key, int64_t, int64_t) override { return !shelf_.contains(key); }
  KvBytes room(int64_t bytes) override {
    return {{new std::byte[static_cast<size_t>(bytes)], std::default_delete<std::byte[]>()}, bytes};
  }
  void keep(const KvKey& key, Role, int32_t tokens, KvBytes bytes) override {
    EXPECT_TRUE(shelf_.emplace(key, bytes).second) << "computed twice";
    tokens_kept += tokens;
  }

  Mood mood = Mood::ready;
  int64_t tokens_kept = 0, expected = 0, unknown = 0;

 private:
  struct Fetch : KvFetch {
    Fetch(KvBytes held, Mood why) : bytes_(std::move(held)), mood_(why) {}
    bool ready() const override { return waited_ || mood_ != Mood::slow || ++asked_ > 3; }
    void wait() const override { waited_ = true; }
    std::span<const std::byte> bytes() const override {
      EXPECT_TRUE(ready());
      if (mood_ == Mood::broken) return {};
      return mood_ == Mood::cut ? bytes_.span().first(1) : bytes_.span();
    }
    KvBytes bytes_;
    Mood mood_;
    mutable bool waited_ = false;
    mutable int asked_ = 0;
  };
  KvForm form_;
  mutable std::map<std::string, size_t> names_;
  std::map<KvKey, KvBytes> shelf_;
};

}  // namespace sheaf::test
