// Lists of machines and profiles that were damaged or made up: read or refused, never a crash, and what
// was read can be used.
#include "tests/fuzz.h"

#include "io/files/hardware_file.h"
#include "tests/estimate/made_up_device.h"

namespace sheaf {
namespace {

using test::MadeUpDevice;

TEST(FuzzEstimate, ProfilesAreReadOrRefused) {
  const TempFolder folder;
  const std::string good = profile_text(MadeUpDevice::profile());
  fuzz_target("profile", {good}, kJsonWords, [&](const std::string& text) {
    const DeviceProfile profile = read_profile(folder.write("c.json", text));
    profile_text(profile);
  });
}

TEST(FuzzEstimate, HardwareListsAreReadOrRefused) {
  const TempFolder folder;
  folder.write("c.json", profile_text(MadeUpDevice::profile()));
  const std::string good =
      "prices_as_of: \"2025-07\"\nhardware:\n"
      "  small: {title: A small one, tflops: 250, bandwidth_gb: 1000, memory_gb: 24, like: big}\n"
      "  big:\n    title: A big one\n    tflops: 500\n    bandwidth_gb: 2000\n    memory_gb: 141\n"
      "    profile: c.json\n"
      "    instances: [{name: eight, devices: 8, usd_per_hour: 16}, {name: one, usd_per_hour: 3}]\n";
  const std::vector<std::string_view> words = {"- ",
                                               ": ",
                                               "&a ",
                                               "*a",
                                               "<<: ",
                                               "{",
                                               "}",
                                               "[",
                                               "]",
                                               "\n",
                                               "  ",
                                               "null",
                                               "1e400",
                                               "-1",
                                               "0",
                                               "like: small",
                                               "nan",
                                               "'",
                                               "\"",
                                               "c.json",
                                               "../",
                                               "true",
                                               "9999999999999999999"};
  fuzz_target("hardware", {good}, words, [&](const std::string& text) {
    const HardwareList list = read_hardware(folder.write("h.yaml", text));
    for (const Hardware& device : list.devices)
      for (const int devices : {1, 8, 9}) device.price(devices);
  });
}

}  // namespace
}  // namespace sheaf
