#pragma once

#include <memory>
#include <utility>

#include "muster/parallel/wrapper_session.h"

namespace muster::test {

/// A session of two workers on the CPU.
struct TwoWorkerSession {
  explicit TwoWorkerSession(Model& model, AnyStrategy rule = Averaging{},
                            const detail::Internals& internals = {})
      : options{.workers = 2,
                .strategy = std::move(rule),
                .pinThreads = false,
                .internals = std::make_shared<detail::Internals>(internals)},
        placements(placeWorkers(2, options.devices, 1, false, CpuShare::ofProcess())),
        session(model, options, placements, caller, reading) {}
  WrapperSession* operator->() { return &session; }

  ParallelOptions options;
  Placements placements;
  Activity caller, reading;
  WrapperSession session;
};

}  // namespace muster::test
