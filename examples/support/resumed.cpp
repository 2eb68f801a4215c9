#include "examples/support/resumed.h"

#include <fmt/format.h>

#include <exception>
#include <string_view>

#include "muster/core/base/error.h"

namespace example {
namespace {

/// How errors about a training state begin.
constexpr std::string_view kTrainingState = "training state: ";

[[noreturn]] void refuse(const std::filesystem::path& file, std::string_view problem) {
  throw muster::FileError(file, fmt::format("cannot be resumed: {}", problem));
}

/// The text of an error about a training state; "" for other failures.
std::string problemOf(const std::exception_ptr& cause) {
  try {
    if (cause) std::rethrow_exception(cause);
  } catch (const muster::InvalidArgument& error) {
    if (std::string_view(error.what()).starts_with(kTrainingState)) return error.what();
  } catch (...) {
  }
  return {};
}

}  // namespace

void fitFrom(const std::filesystem::path& file, const std::function<void()>& fit) {
  if (file.empty()) return fit();
  try {
    fit();
  } catch (const muster::InvalidArgument& error) {
    refuse(file, error.what());
  } catch (const muster::TrainingError& error) {
    if (const auto problem = problemOf(error.cause()); !problem.empty()) refuse(file, problem);
    throw;
  }
}

}  // namespace example
