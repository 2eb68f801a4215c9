#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>

#include "muster/core/base/standard_library.h"

namespace muster {

/// Base class of all exceptions of muster. `what()` is one sentence that says what failed and where.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// An invalid argument, option or shape. Correct the call.
class InvalidArgument : public Error {
 public:
  using Error::Error;
};

/// A file that is missing, unreadable, of the wrong format, or could not be written. Names the path.
class FileError : public Error {
 public:
  FileError(std::filesystem::path path, const std::string& problem)
      : Error(fmt::format("{}: {}", path.empty() ? "a file without a name" : path.string(), problem)),
        path_(std::move(path)) {}
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// A download that failed after all retries. Names the address.
class DownloadError : public Error {
 public:
  using Error::Error;
};

/// A device ran out of memory, with the bytes requested, or this process in the call that is named.
class OutOfMemory : public Error {
 public:
  using Error::Error;
};

/// The device does not exist here, or this build cannot use it.
class DeviceUnavailable : public Error {
 public:
  using Error::Error;
};

/// A device or its library failed; the text has the call and its location.
class DeviceFailure : public Error {
 public:
  using Error::Error;
};

/// A score (loss) is NaN or infinite. Nothing of that step has been merged.
class NonFiniteScore : public Error {
 public:
  using Error::Error;
};

/// Thrown by `ParallelWrapper::fit` and `DataParallel`: names what failed; for a worker or replica its index
/// and device, for a worker also its batch. Batches and epochs count from 1. `cause()` is the original
/// exception.
class TrainingError : public Error {
 public:
  TrainingError(const std::string& text, int worker, std::exception_ptr cause)
      : Error(text), worker_(worker), cause_(std::move(cause)) {}

  /// Index of the worker or replica that failed; -1 for the iterator, a merged listener or the coordinator.
  int worker() const { return worker_; }
  const std::exception_ptr& cause() const { return cause_; }

 private:
  int worker_;
  std::exception_ptr cause_;
};

/// Throws InvalidArgument with a formatted sentence unless `condition` holds.
template <typename... Args>
void require(bool condition, fmt::format_string<Args...> text, Args&&... args) {
  if (!condition) [[unlikely]]
    throw InvalidArgument(fmt::format(text, std::forward<Args>(args)...));
}

/// The text of an exception of any type.
std::string describe(const std::exception_ptr& exception);

}  // namespace muster
