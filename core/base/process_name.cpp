#include "muster/core/base/process_name.h"

#include "muster/core/base/mutex.h"

namespace muster {
namespace {

struct Name {
  Mutex mutex;
  std::string text MUSTER_GUARDED_BY(mutex);
};

/// Never destroyed, because destructors of other statics log.
Name& ofThisProcess() {
  static Name& name = *new Name;
  return name;
}

}  // namespace

void setProcessName(std::string_view name) {
  Name& own = ofThisProcess();
  const Lock lock(own.mutex);
  own.text = name;
}

std::string lineStart(std::string_view program) {
  Name& own = ofThisProcess();
  const Lock lock(own.mutex);
  std::string start = std::string(program) + ": ";
  if (!own.text.empty()) start += own.text + ": ";
  return start;
}

}  // namespace muster
