#pragma once
#include "io/model/family.h"

namespace sheaf {

extern const Family kLlamaFamily;
extern const Family kQwen2Family;
extern const Family kQwen3Family;
extern const Family kMistralFamily;
extern const Family kPhi3Family;
extern const Family kOlmo2Family;
extern const Family kGraniteFamily;
extern const Family kSmolLm3Family;
extern const Family kGemma2Family;
extern const Family kGemma3Family;
extern const Family kOlmo3Family;
extern const Family kGlm4Family;
extern const Family kQwen2MoeFamily;
extern const Family kQwen3MoeFamily;
extern const Family kOlmoeFamily;
extern const Family kMixtralFamily;
extern const Family kGraniteMoeFamily;
extern const Family kGlm4MoeFamily;
extern const Family kYiFamily;
extern const Family kGptOssFamily;

}  // namespace sheaf
