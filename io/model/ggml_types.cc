#include "io/model/ggml_types.h"

#include <algorithm>
#include <array>

namespace sheaf {
namespace {

constexpr std::array<GgmlType, 35> kGgmlTypes{{
    {0, "F32", 1, 4, DType::f32},
    {1, "F16", 1, 2, DType::f16},
    {2, "Q4_0", 32, 18, DType::q4_0},
    {3, "Q4_1", 32, 20, DType::q4_1},
    {6, "Q5_0", 32, 22, DType::q5_0},
    {7, "Q5_1", 32, 24, {}},
    {8, "Q8_0", 32, 34, DType::q8_0},
    {9, "Q8_1", 32, 36, {}},
    {10, "Q2_K", 256, 84, {}},
    {11, "Q3_K", 256, 110, {}},
    {12, "Q4_K", 256, 144, DType::q4_k},
    {13, "Q5_K", 256, 176, DType::q5_k},
    {14, "Q6_K", 256, 210, DType::q6_k},
    {15, "Q8_K", 256, 292, {}},
    {16, "IQ2_XXS", 256, 66, {}},
    {17, "IQ2_XS", 256, 74, {}},
    {18, "IQ3_XXS", 256, 98, {}},
    {19, "IQ1_S", 256, 50, {}},
    {20, "IQ4_NL", 32, 18, {}},
    {21, "IQ3_S", 256, 110, {}},
    {22, "IQ2_S", 256, 82, {}},
    {23, "IQ4_XS", 256, 136, {}},
    {24, "I8", 1, 1, {}},
    {25, "I16", 1, 2, {}},
    {26, "I32", 1, 4, {}},
    {27, "I64", 1, 8, {}},
    {28, "F64", 1, 8, {}},
    {29, "IQ1_M", 256, 56, {}},
    {30, "BF16", 1, 2, DType::bf16},
    {31, "Q4_0_4_4", 32, 18, {}},
    {32, "Q4_0_4_8", 32, 18, {}},
    {33, "Q4_0_8_8", 32, 18, {}},
    {34, "TQ1_0", 256, 54, {}},
    {35, "TQ2_0", 256, 66, {}},
    {39, "MXFP4", 32, 17, {}},
}};

}  // namespace

const GgmlType* find_ggml_type(uint32_t number) {
  const auto* found = std::ranges::find(kGgmlTypes, number, &GgmlType::number);
  return found == kGgmlTypes.end() ? nullptr : found;
}

std::string readable_ggml_types() {
  std::string list;
  for (const GgmlType& type : kGgmlTypes) {
    if (type.dtype) list += (list.empty() ? "" : ", ") + std::string(type.name);
  }
  return list;
}

}  // namespace sheaf
