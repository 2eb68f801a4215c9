#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>

namespace muster {

/// Root of every exception that muster throws. `what()` is one whole sentence that names what failed and
/// where.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// An argument, option or shape that cannot be used. Mend the call.
class InvalidArgument : public Error {
 public:
  using Error::Error;
};

/// A file that is missing, unreadable, of the wrong format, or could not be written. Names the path.
class FileError : public Error {
 public:
  FileError(std::filesystem::path path, const std::string& problem)
      : Error(fmt::format("{}: {}", path.string(), problem)), path_(std::move(path)) {}
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// A download that failed after all retries. Names the address.
class DownloadError : public Error {
 public:
  using Error::Error;
};

/// Memory of a device ran out. Names the bytes asked for.
class OutOfMemory : public Error {
 public:
  using Error::Error;
};

/// The device does not exist here, or this build cannot use it.
class DeviceUnavailable : public Error {
 public:
  using Error::Error;
};

/// A device or the library that drives it failed; the text carries the call and its place.
class DeviceFailure : public Error {
 public:
  using Error::Error;
};

/// A score (loss) that is NaN or infinite. Nothing of that step has been merged.
class NonFiniteScore : public Error {
 public:
  using Error::Error;
};

/// What `ParallelWrapper::fit` and `DataParallel` throw when a part of them failed: names the part, and for a
/// worker (a replica) its index and device, for a worker its batch, too. The sentence counts batches and
/// epochs from 1. `cause()` is the original exception.
class TrainingError : public Error {
 public:
  TrainingError(const std::string& text, int worker, std::exception_ptr cause)
      : Error(text), worker_(worker), cause_(std::move(cause)) {}

  /// Index of the worker or replica that failed, or -1 where it was the iterator, a merged listener or the
  /// coordinator.
  int worker() const { return worker_; }
  const std::exception_ptr& cause() const { return cause_; }

 private:
  int worker_;
  std::exception_ptr cause_;
};

/// Throws InvalidArgument with a formatted sentence where `condition` does not hold.
template <typename... Args>
void require(bool condition, fmt::format_string<Args...> text, Args&&... args) {
  if (!condition) [[unlikely]]
    throw InvalidArgument(fmt::format(text, std::forward<Args>(args)...));
}

/// The text of an exception, whatever its type.
std::string describe(const std::exception_ptr& exception);

}  // namespace muster
