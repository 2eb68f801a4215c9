#pragma once

#include "muster/parallel/run/detail/watchers.h"
#include "muster/parallel/run/detail/watching.h"
#include "muster/parallel/run/run_session.h"

namespace muster::detail {

/// The listeners of a session, for its results and its report.
struct SessionParts {
  Watchers watchers;
  Watching watching;

  static const SessionParts& of(const RunSession& session) { return *session.parts_; }
};

}  // namespace muster::detail
