#pragma once

#include <boost/program_options.hpp>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/core/device/device.h"

namespace example {

struct DeviceChoice {
  std::vector<muster::Device> devices = {muster::Device::cpu()};
  /// For a user who did not ask for the GPU that is used: its name, and how to have the CPU instead; or why a
  /// GPU that is there is not used. "" where there is nothing to tell.
  std::string notice = {};
  bool unasked = false;  ///< these are GPUs, and nobody asked for them
};

/// What a machine answers where nobody says on which device to train.
struct Machine {
  std::vector<muster::Device> gpus = {};  ///< those that can be counted
  std::string whyNone = {};               ///< why there are none
  bool hasDriver = false;                 ///< of a GPU
  /// Why a GPU cannot be used: it is busy, full, too old, or its libraries do not start; "" where it can be.
  std::function<std::string(muster::Device)> whyUnusable;
  std::function<std::string(muster::Device)> nameOf;

  /// The one that this program runs on.
  static Machine here();
};

/// The first GPU that can be used, or else the CPU. Nobody asked for a GPU, so one that cannot be used is no
/// error.
DeviceChoice chooseUnasked(const Machine& machine);

/// Tries the GPUs that somebody asked for, before anything that takes long.
/// @throws muster::DeviceUnavailable naming the one that is busy, full or too old, and why.
void requireUsable(const DeviceChoice& choice);

/// Calls `run`, which computes on `choice`. Where a GPU that nobody asked for fails it, the error says how to
/// have the CPU.
int runOn(const DeviceChoice& choice, const std::function<int()>& run);

/// As in "cpu, cuda:0 and cuda:1".
std::string listOf(const std::vector<muster::Device>& devices);

/// Where a program trains that was not told.
enum class Unasked {
  FirstGpu,  ///< that can be used, where there is one
  Cpu        ///< what a program shows or measures is shown there
};

/// On which devices a program trains: what `--device` says.
class DeviceOption {
 public:
  explicit DeviceOption(Unasked unasked = Unasked::FirstGpu) : unasked_(unasked) {}
  /// Adds `--device` to a description. @param who  computes there, in the singular.
  void describe(boost::program_options::options_description& options, std::string_view who = "worker");
  /// Worker i computes on device i mod D of these. When the command line has been read.
  /// @throws muster::InvalidArgument for a list that names no devices, one of them twice, or GPUs and the CPU
  ///         together; muster::DeviceUnavailable for a device that is not there, naming those that are.
  DeviceChoice choose() const;

 private:
  Unasked unasked_;
  std::optional<std::string> list_;  // none: nothing was said
};

}  // namespace example
