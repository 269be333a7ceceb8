#include "tests/files.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/estimate/sweep.h"
#include "core/model/shapes.h"
#include "io/files/estimate_section.h"
#include "io/files/hardware_file.h"
#include "tests/estimate/made_up_device.h"

namespace sheaf {
namespace {

using test::MadeUpDevice;

class EstimateFiles : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) { return folder_.write(name, text); }
  /// A file with the measurements of the made-up device, which takes `share` of its time.
  void write_profile(const std::string& name, Precision precision, double share, bool fp8_keys = false,
                     const std::string& machine = {}) {
    DeviceProfile profile = MadeUpDevice::profile();
    profile.precision = precision;
    profile.fp8_keys = fp8_keys;
    if (!machine.empty()) profile.machine = machine;
    for (Measurement& measured : profile.measurements) measured.device = measured.device * share;
    write(name, profile_text(profile));
  }
  std::string refusal_of_profile(const std::string& text) {
    return refusal([&] { read_profile(write("c.json", text)); });
  }
  std::string refusal_of_hardware(const std::string& text) {
    write("c.json", profile_text(MadeUpDevice::profile()));
    return refusal([&] { read_hardware(write("h.yaml", text)); });
  }
  template <class Call>
  static std::string refusal(const Call& call) {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::input);
      return error.what();
    }
    return "was taken";
  }
  static bool says(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }
  TempFolder folder_;
};

TEST_F(EstimateFiles, AProfileComesBackAsItWasWritten) {
  const DeviceProfile before = MadeUpDevice::profile();
  const DeviceProfile after = read_profile(write("c.json", profile_text(before)));
  EXPECT_EQ(after.device, before.device);
  EXPECT_EQ(after.backend, before.backend);
  EXPECT_EQ(after.date, before.date);
  ASSERT_EQ(after.measurements.size(), before.measurements.size());
  for (size_t i = 0; i < before.measurements.size(); ++i) {
    const Measurement &a = before.measurements[i], &b = after.measurements[i];
    EXPECT_EQ(a.shape, b.shape);
    EXPECT_EQ(a.probe.parts, b.probe.parts);
    EXPECT_EQ(a.probe.picks, b.probe.picks);
    EXPECT_EQ(a.held_out, b.held_out);
    EXPECT_NEAR(a.device.total(), b.device.total(), 3e-7);
    EXPECT_NEAR(a.host, b.host, 1e-7);
  }
}

TEST_F(EstimateFiles, AProfileIsReadStrictly) {
  const auto one = [](const std::string& line) {
    return R"({"format":"sheaf calibration 1","device":"d","date":"t","version":"v","measurements":[)" +
           line + "]}";
  };
  EXPECT_TRUE(says(refusal_of_profile("{}"), "format"));
  EXPECT_TRUE(says(refusal_of_profile(R"({"format":"other"})"), "format"));
  EXPECT_TRUE(says(refusal_of_profile(one("")), "measurements"));
  EXPECT_TRUE(says(refusal_of_profile(one(R"({"shape":"nope","parts":[[1,0,1,0,1]],"picks":1})")), "nope"));
  EXPECT_TRUE(says(refusal_of_profile(one(R"({"shape":"qwen3-8b","parts":[[1,0,1,0]],"picks":1})")),
                   "measurement 1"));
  EXPECT_TRUE(says(refusal_of_profile(one(R"({"shape":"qwen3-8b","parts":[[0,0,1,0,1]],"picks":1})")),
                   "is not a possible part of a step"));
  EXPECT_TRUE(says(refusal_of_profile(one(R"({"shape":"qwen3-8b","parts":[[1,0,1,0,1]],"picks":1})")),
                   "took no time"));
  EXPECT_TRUE(
      says(refusal_of_profile(one(R"({"shape":"qwen3-8b","parts":[[1,0,1,0,1]],"picks":1,"products":-1})")),
           "below 0"));
  EXPECT_TRUE(says(refusal_of_profile(one(R"({"shape":"qwen3-8b","speed":1})")), "unknown key \"speed\""));
}

TEST_F(EstimateFiles, HardwareWithoutAProfileBorrowsAnothers) {
  write("c.json", profile_text(MadeUpDevice::profile()));
  const HardwareList list = read_hardware(write("h.yaml", R"(
prices_as_of: "2025-07"
hardware:
  small: {title: A small one, tflops: 250, bandwidth_gb: 1000, memory_gb: 24, like: big}
  big:
    title: A big one
    tflops: 500
    bandwidth_gb: 2000
    memory_gb: 141
    calibration: c.json
    instances: [{name: eight, devices: 8, usd_per_hour: 16}, {name: one, usd_per_hour: 3}]
)"));
  EXPECT_EQ(list.prices_as_of, "2025-07");
  const Hardware &big = list.find("big"), &small = list.find("small");
  EXPECT_FALSE(big.borrowed);
  EXPECT_EQ(big.measured_on, "made up");
  const std::optional<Price> one = big.price(1), eight = big.price(8), nine = big.price(9);
  ASSERT_TRUE(one && eight && nine);
  EXPECT_EQ(one->instance->name, "one");  // an eighth of the other is cheaper, but cannot be rented
  EXPECT_NEAR(one->usd_per_hour, 3, 1e-9);
  EXPECT_FALSE(one->share());
  EXPECT_FALSE(eight->share());
  EXPECT_NEAR(eight->rented_usd_per_hour, 16, 1e-9);
  EXPECT_NEAR(nine->rented_usd_per_hour, 27, 1e-9);
  Hardware whole;
  whole.instances = {{"eight", 8, 16}};
  EXPECT_NEAR(whole.price(1)->usd_per_hour, 2, 1e-9);
  EXPECT_TRUE(whole.price(1)->share());
  EXPECT_NEAR(whole.price(12)->usd_per_hour, 32, 1e-9);  // two, with four devices too many
  EXPECT_EQ(whole.price(12)->instances, 2);
  EXPECT_FALSE(whole.price(12)->share());
  EXPECT_EQ(price_text(*whole.price(12), 12), "eight × 2 with 16 devices, $32.00 an hour");
  EXPECT_TRUE(small.borrowed);
  EXPECT_GT(small.error, big.error);
  EXPECT_NEAR(small.device.peak_flops, big.device.peak_flops / 2, 1e6);
  EXPECT_FALSE(small.price(1));
  EXPECT_TRUE(says(refusal([&] { list.find("huge"); }), "small, big"));
}

Job::ModelPart model(Precision dtype) {
  Job::ModelPart model;
  model.dtype = dtype;
  return model;
}

TEST_F(EstimateFiles, ACpuHasAProfileForEachDtype) {
  write_profile("f32.json", Precision::f32, 1, false, "some processor");
  write_profile("int8.json", Precision::int8, 0.25, false, "some processor");
  const std::string path = write("h.yaml", R"(
prices_as_of: "2025-07"
hardware:
  cpu: {title: a CPU, kind: cpu, memory_gb: 16, profile: [f32.json, int8.json]}
)");
  const auto peak = [&](Precision precision) {
    return read_hardware(path, model(precision)).find("cpu").device.peak_flops;
  };
  EXPECT_NEAR(peak(Precision::int8) / peak(Precision::f32), 4, 0.01);
  EXPECT_EQ(read_hardware(path, model(Precision::int8)).find("cpu").precision, Precision::int8);
  // Nobody measured int16: fp32 stands for it, and the estimate says so.
  const HardwareList list = read_hardware(path, model(Precision::int16));
  const Hardware& other = list.find("cpu");
  EXPECT_EQ(other.precision, Precision::f32);
  EXPECT_TRUE(says(error_text(other, shape_by_name("qwen3-8b")), "the job computes in int16"));
  EXPECT_FALSE(
      says(error_text(read_hardware(path).find("cpu"), shape_by_name("qwen3-8b")), "the job computes in"));
}

TEST_F(EstimateFiles, AGpuHasOneInBf16AndOneInFp8) {
  write_profile("bf16.json", Precision::bf16, 1);
  write_profile("fp8.json", Precision::fp8, 0.5);
  const std::string path = write("h.yaml", R"(
prices_as_of: "2025-07"
hardware:
  big: {title: big, tflops: 100, fp8_tflops: 200, bandwidth_gb: 1000, memory_gb: 80, profile: [bf16.json, fp8.json]}
  half: {title: half, tflops: 50, fp8_tflops: 100, bandwidth_gb: 500, memory_gb: 80, like: big}
  old: {title: old, tflops: 50, bandwidth_gb: 500, memory_gb: 80, like: big}
)");
  const HardwareList plain = read_hardware(path), narrow = read_hardware(path, model(Precision::fp8));
  for (const char* name : {"big", "half"}) {
    EXPECT_NEAR(narrow.find(name).device.peak_flops / plain.find(name).device.peak_flops, 2, 0.01) << name;
    EXPECT_TRUE(narrow.find(name).computes_as_wanted());
    EXPECT_EQ(narrow.find(name).precision, Precision::fp8);
  }
  EXPECT_NEAR(narrow.find("big").device.peak_flops / narrow.find("half").device.peak_flops, 2, 0.01);
  EXPECT_FALSE(narrow.find("old").computes_as_wanted());
  EXPECT_TRUE(plain.find("old").computes_as_wanted());
}

TEST_F(EstimateFiles, AGpuMayHaveOneWithKeysInFp8) {
  write_profile("bf16.json", Precision::bf16, 1);
  write_profile("keys.json", Precision::bf16, 0.5, true);
  const std::string path = write("h.yaml", R"(
prices_as_of: "2025-07"
hardware:
  big: {title: big, tflops: 100, fp8_tflops: 200, bandwidth_gb: 1000, memory_gb: 80, profile: [bf16.json, keys.json]}
  half: {title: half, tflops: 50, fp8_tflops: 100, bandwidth_gb: 500, memory_gb: 80, like: big}
)");
  const HardwareList plain = read_hardware(path), keys = read_hardware(path, {}, KvPrecision::fp8);
  const auto faster = [&](const char* name) {
    return keys.find(name).device.peak_flops / plain.find(name).device.peak_flops;
  };
  EXPECT_NEAR(faster("big"), 2, 0.01);
  EXPECT_NEAR(faster("half"), 1, 0.01);  // it may not multiply FP8 keys
  const ModelConfig shape = shape_by_name("qwen3-8b");
  const char* note = "attention was not measured there";
  EXPECT_FALSE(says(error_text(keys.find("big"), shape), note));
  EXPECT_TRUE(says(error_text(keys.find("half"), shape), note));
  EXPECT_FALSE(says(error_text(plain.find("half"), shape), note));

  // The precision counts more.
  write_profile("fp8.json", Precision::fp8, 0.5);
  const std::string both = write("b.yaml", R"(
prices_as_of: "2025-07"
hardware:
  big: {title: big, tflops: 100, fp8_tflops: 200, bandwidth_gb: 1000, memory_gb: 80, profile: [keys.json, fp8.json]}
)");
  EXPECT_EQ(read_hardware(both, model(Precision::fp8), KvPrecision::fp8).find("big").precision,
            Precision::fp8);
  DeviceProfile profile = MadeUpDevice::profile();
  profile.fp8_keys = true;
  std::string text = profile_text(profile);
  EXPECT_TRUE(read_profile(write("c.json", text)).fp8_keys);
  text.replace(text.find("\"kv_dtype\":\"fp8\""), 16, "\"kv_dtype\":\"f16\"");
  EXPECT_TRUE(says(refusal([&] { read_profile(write("c.json", text)); }), "use fp8, or leave it out"));
}

TEST_F(EstimateFiles, KeysInFp8AreMultipliedAsTheyAreOnlyWhereTheKernelCan) {
  constexpr auto fp8 = KvPrecision::fp8, wide = KvPrecision::automatic;
  ModelConfig config = shape_by_name("qwen3-8b");
  EXPECT_EQ(attended_precision(config, wide, false), wide);
  EXPECT_EQ(attended_precision(config, fp8, false), fp8);
  EXPECT_EQ(attended_precision(config, fp8, true), wide);
  EXPECT_EQ(attended_precision(shape_by_name("qwen2.5-7b"), fp8, false), wide) << "keys have a bias";
  for (const int32_t dim : {96, 256}) {
    config.head_dim = dim;
    EXPECT_EQ(attended_precision(config, fp8, false), fp8) << dim;
  }
  config.head_dim = 32;
  EXPECT_EQ(attended_precision(config, fp8, false), wide);
  config.score_cap = 50;
  for (const auto& [dim, attended] : {std::pair{128, wide}, {256, fp8}}) {
    config.head_dim = dim;
    EXPECT_EQ(attended_precision(config, fp8, false), attended) << dim;
  }
}

TEST_F(EstimateFiles, HardwareIsReadStrictly) {
  const auto with = [](const std::string& device) {
    return "prices_as_of: 2025-07\nhardware:\n  gpu: " + device + "\n";
  };
  EXPECT_TRUE(says(refusal_of_hardware("hardware: {}"), "prices_as_of"));
  for (const char* date : {"now", "2025-13", "07-2025", "\"2025\""})
    EXPECT_TRUE(says(refusal_of_hardware(fmt::format("prices_as_of: {}\nhardware: {{}}", date)),
                     "h.yaml:1: prices_as_of must be the month of the prices, for example \"2026-11\""))
        << date;
  EXPECT_TRUE(says(refusal_of_hardware("prices_as_of: 2025-07\nhardware: []"), "h.yaml:2"));
  const std::string plain = "title: t, tflops: 1, bandwidth_gb: 1, memory_gb: 1";
  EXPECT_TRUE(says(refusal_of_hardware(with("{" + plain + "}")),
                   "needs either profile (a file) or like (another device)"));
  EXPECT_TRUE(
      says(refusal_of_hardware(with("{" + plain + ", like: gpu}")), "like names gpu, which is not a device"));
  EXPECT_TRUE(says(refusal_of_hardware(with("{" + plain + ", profile: gone.json}")), "gone.json"));
  EXPECT_TRUE(says(refusal_of_hardware(with("{" + plain + ", profile: c.json, tflop: 2}")), "tflop"));
  EXPECT_TRUE(says(
      refusal_of_hardware(with("{title: t, tflops: -1, bandwidth_gb: 1, memory_gb: 1, like: x}")), "tflops"));
  EXPECT_TRUE(says(refusal_of_hardware(with("{title: t, memory_gb: 1, profile: c.json}")), "tflops"));
  EXPECT_TRUE(says(refusal_of_hardware(with("{" + plain + ", profile: c.json, instances: [{name: a}]}")),
                   "usd_per_hour"));
  EXPECT_EQ(refusal_of_hardware(with("{" + plain + ", profile: c.json}")), "was taken");
}

TEST_F(EstimateFiles, SweepsAndTimesAreReadStrictly) {
  EXPECT_EQ(parse_sweep("method=ippd,prefix").values, (std::vector<std::string>{"ippd", "prefix"}));
  for (const char* wrong : {"method", "method=", "methods=ippd", "method=ippd,,prefix", "=x"})
    EXPECT_TRUE(says(refusal([&] { parse_sweep(wrong); }), "--sweep")) << wrong;
  EXPECT_EQ(parse_duration("2h"), 7200);
  EXPECT_EQ(parse_duration("1.5m"), 90);
  EXPECT_EQ(parse_duration("30s"), 30);
  for (const char* wrong : {"", "h", "2d", "-3h", "2 h", "3"})
    EXPECT_TRUE(says(refusal([&] { parse_duration(wrong); }), "--within")) << wrong;
}

}  // namespace
}  // namespace sheaf
