#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/core/device/device.h"
#include "muster/parallel/run/run_file.h"

namespace comparing {

/// The run file of a comparison, from which the run of each arm and seed is made.
class BaseRun {
 public:
  /// @param path  for messages.  @param text  of the run file.  @param sets  fields in place of its own.
  BaseRun(std::string path, std::string text, std::vector<std::string> sets);

  /// Sets a field of all arms, as for --set.
  void set(std::string field) { sets_.push_back(std::move(field)); }

  /// Sets the devices of all arms, as for --set.
  void setDevices(std::span<const muster::Device> devices);

  /// What an arm's devices "auto" are when it is trained, chosen once, so that all runs have the same; none:
  /// they stay "auto".
  void setUnasked(std::span<const muster::Device> devices);

  /// The run of an arm with a seed: the network's first weights and the order of the examples are the seed's;
  /// what is held out to test and to validate with is the same for all seeds.
  /// @param sets  the arm's fields.
  /// @throws InvalidArgument naming the file or --set, whichever is to blame; or else a field of the arm.
  muster::RunFile run(const std::vector<std::string>& sets = {}, std::int64_t seed = 0) const;
  /// As `run`, with the devices that were chosen in place of "auto".
  muster::RunFile trainedRun(const std::vector<std::string>& sets, std::int64_t seed) const;

  /// The fields of a run that decide its results, by path.
  std::map<std::string, std::string> settings(const muster::RunFile& run) const;
  /// In which of them a run with this seed differs from the file's, as in `training.workers=4`, sorted.
  std::vector<std::string> differences(const muster::RunFile& run, std::int64_t seed) const;

  /// The path of a field that is given by a short name: an option of `strategy`, or the last part of a path
  /// in training, data, network or network.updater. @throws InvalidArgument naming the nearest.
  std::string pathOf(std::string_view name, std::string_view strategy) const;

 private:
  std::string path_, text_;
  std::vector<std::string> sets_;
  std::string unasked_;
};

}  // namespace comparing
