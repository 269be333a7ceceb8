#include "io/model/families/families.h"

#include <algorithm>

namespace sheaf {
namespace {

constexpr const Family* kFamilies[] = {
    &kLlamaFamily,   &kQwen2Family,      &kQwen3Family,    &kMistralFamily,  &kPhi3Family,
    &kOlmo2Family,   &kGraniteFamily,    &kSmolLm3Family,  &kGemma2Family,   &kGemma3Family,
    &kOlmo3Family,   &kGlm4Family,       &kQwen2MoeFamily, &kQwen3MoeFamily, &kOlmoeFamily,
    &kMixtralFamily, &kGraniteMoeFamily, &kGlm4MoeFamily,  &kYiFamily,       &kGptOssFamily,
};

}  // namespace

const Family* find_family(std::string_view name, const char* Family::*named) {
  const auto* found = std::ranges::find_if(
      kFamilies, [&](const Family* family) { return family->*named != nullptr && family->*named == name; });
  return found == std::end(kFamilies) ? nullptr : *found;
}

std::string family_names(const char* Family::*named) {
  std::string list;
  for (const Family* family : kFamilies)
    if (const char* name = family->*named) list += (list.empty() ? "" : ", ") + std::string(name);
  return list;
}

}  // namespace sheaf
