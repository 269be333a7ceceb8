#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/estimate/device_model.h"

namespace sheaf {

/// A machine to rent.
struct Instance {
  std::string name;
  int32_t devices = 1;
  double usd_per_hour = 0;

  double usd_per_device_hour() const { return usd_per_hour / devices; }
};

/// What some devices cost, by list prices.
struct Price {
  const Instance* instance = nullptr;
  int32_t instances = 1;
  double usd_per_hour = 0;         ///< of whole instances; of the devices' share where the smallest has more
  double rented_usd_per_hour = 0;  ///< of whole instances

  /// The devices are a part of an instance, which is rented as a whole.
  bool share() const { return usd_per_hour < 0.999 * rented_usd_per_hour; }
};

/// A device that a job could run on.
struct Hardware {
  std::string name;   ///< "h200"
  std::string title;  ///< "NVIDIA H200 SXM, 141 GB"
  bool gpu = true;
  double flops = 0;      ///< bf16 dense, as its data sheet has it; GPUs only
  double fp8_flops = 0;  ///< FP8 FLOP/s of matrix products; 0: no FP8 on this device
  double bandwidth = 0;  ///< bytes per second, as its data sheet has it
  double memory = 0;     ///< bytes
  double load_rate = 0;  ///< bytes of weights a second, from the disk into the device
  std::vector<Instance> instances;

  std::string measured_on;  ///< the device whose efficiencies these are
  std::string measured;     ///< when
  bool borrowed = false;    ///< the efficiencies are another device's
  DeviceModel device;
  double error = 0;                       ///< of an estimate, as a share
  Precision precision = Precision::bf16;  ///< what it was measured in
  Precision wanted = Precision::bf16;     ///< and what the job computes in
  bool fp8_keys = false;                  ///< whether it was measured with keys and values in FP8
  bool wanted_fp8_keys = false;           ///< and whether the job keeps them so

  /// FLOPs in the time in which it reads a byte, by its data sheet or else by what was measured.
  double flops_per_byte() const;
  bool computes_as_wanted() const { return wanted != Precision::fp8 || fp8_flops > 0; }

  /// None where no instance is known.
  std::optional<Price> price(int32_t count) const;
};

/// The devices that are known, and their prices.
struct HardwareList {
  std::string path;
  std::string prices_as_of;  ///< "2025-07", or with a day
  std::vector<Hardware> devices;

  /// Whole months since then.
  int32_t price_months(std::chrono::year_month today) const;
  /// Refuses an unknown name and lists the known ones. `from`: where it was asked for.
  const Hardware& find(const std::string& name, const std::string& from = "--hardware") const;
};

}  // namespace sheaf
