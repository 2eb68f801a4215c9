#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "examples/muster/command_line.h"
#include "muster/core/base/error.h"
#include "muster/parallel/run/run_file.h"

namespace program {

/// What a command line sets in a run file.
struct FieldChoices {
  std::vector<std::string> byOption;  ///< by the options for fields, as "training.workers=4"
  std::vector<std::string> options;   ///< [as byOption] the option, as in "--workers 4"
  std::vector<std::string> sets;      ///< by --set

  /// All, of which a later one wins over an earlier one: --set over the options.
  std::vector<std::string> all() const;
  /// What is wrong because of one of them, with its option. @param set  index in `all()`.
  std::string problemOf(std::size_t set, std::string_view problem) const;
};

/// Adds `--set`.
void describeSets(CommandLine& line, std::vector<std::string>& sets);

/// Adds an option for each field that is often set, and `--set` for the others.
void describeFields(CommandLine& line, FieldChoices& choices);

/// The run of a file with these choices. An error names the option that causes it, or else the file; and if
/// the file lacks a field that one of the options needs, the option for that.
/// @throws as muster::RunFile::read.
muster::RunFile readRun(const std::string& path, const FieldChoices& choices);
/// As above, with what --set says.
muster::RunFile readRun(const std::string& path, const std::vector<std::string>& sets);

/// A message of the library, in which what may be set has options as in `describeFields` and `--set`: of
/// "training.devices=cpu computes on the CPU instead" it is "--device cpu computes on the CPU instead".
std::string asOptions(const std::string& message);
/// As above, for commands without these options: "--set training.devices=cpu computes on the CPU instead".
std::string asSets(const std::string& message);
/// A text with an option, the second, in place of each of these fields.
std::string withOptions(std::string text,
                        std::span<const std::pair<std::string_view, std::string_view>> fields);
/// Calls `body`; `say` words its errors.
template <typename Body>
auto sayErrors(const std::function<std::string(std::string)>& say, const Body& body) {
  try {
    return body();
  } catch (const muster::InvalidArgument& error) {
    throw muster::InvalidArgument(say(error.what()));
  } catch (const muster::Error& error) {
    throw muster::Error(say(error.what()));
  }
}

/// Which fields of a run file a command uses. All but a training have `--set` alone for them.
enum class FieldUse {
  Training,   ///< all, and there are the options of `describeFields`
  Comparing,  ///< what the arms of a comparison may have
  Testing     ///< data and network
};

/// The `--set` for the fields of a training's option, as "--set training.epochs=N" for "--epochs"; "" if
/// there is no such option, or the command does not use its fields.
std::string setsOf(std::string_view option, FieldUse use);
/// What to use instead of an option that a command does not have: another one, as "--lr" for
/// "--learning-rate", or what `setsOf` returns; "" if its name gives no field that the command uses.
std::string insteadOf(std::string_view option, FieldUse use);

}  // namespace program
