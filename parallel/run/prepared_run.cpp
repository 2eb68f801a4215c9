#include "muster/parallel/run/prepared_run.h"

#include <utility>

#include "muster/parallel/run/detail/preparation.h"

namespace muster {

PreparedRun prepareRun(RunFile run) {
  return detail::prepareRun(std::move(run), detail::NodeOptions());
}

}  // namespace muster
