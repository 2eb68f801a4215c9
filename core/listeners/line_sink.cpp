#include "muster/core/listeners/line_sink.h"

#include "muster/core/base/log.h"

namespace muster {

void writeLine(const LineSink& sink, std::string_view line) {
  sink ? sink(line) : log(LogLevel::Info, line);
}

}  // namespace muster
