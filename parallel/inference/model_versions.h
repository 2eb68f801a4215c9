#pragma once

#include <cstdint>
#include <memory>

#include "muster/core/base/mutex.h"
#include "muster/core/device/context.h"
#include "muster/core/nn/model.h"

namespace muster {

/// The state that replicas must serve, and its number. Thread-safe.
class ModelVersions {
 public:
  /// Version 1. @throws InvalidArgument if `model` is not initialised.
  explicit ModelVersions(Model& model);

  /// The latest version, as a source for `replicate`.
  std::shared_ptr<const Model> model() const;
  /// @return the number of the new version. @throws InvalidArgument naming the block or layer that differs.
  std::int64_t publish(Model& model);
  std::int64_t latest() const { return current()->number; }
  /// Copies the latest version into a replica, unless the replica has it.
  /// @param version  the replica's; 0 if it holds no complete version.
  void bring(Model& replica, std::int64_t& version) const;

 private:
  struct Version {
    std::int64_t number;
    Context context;
    std::unique_ptr<Model> model;
    Mutex mutex = {};  ///< held while the state is copied; guards no member, `model` is set once
  };

  std::shared_ptr<Version> current() const;

  Mutex publishing_;  // held while a version is made
  mutable Mutex mutex_;
  std::shared_ptr<Version> current_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster
