#include "examples/support/resumed.h"

#include <fmt/format.h>

#include <exception>
#include <string>
#include <string_view>

#include "muster/core/base/error.h"

namespace example {
namespace {

/// How errors about a training state begin.
constexpr std::string_view kTrainingState = "training state: ";

/// The text of an error about a training state; "" for other failures.
std::string problemOf(const std::exception_ptr& cause) {
  try {
    if (cause) std::rethrow_exception(cause);
  } catch (const muster::TrainingError& error) {  // of a worker
    return problemOf(error.cause());
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
  } catch (...) {
    if (const auto problem = problemOf(std::current_exception()); !problem.empty())
      throw muster::FileError(file, fmt::format("cannot be resumed: {}", problem));
    throw;
  }
}

}  // namespace example
