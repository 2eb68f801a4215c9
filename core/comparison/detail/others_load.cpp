#include "muster/core/comparison/detail/others_load.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>

namespace muster::detail {

OthersLoad::OthersLoad() : begin_(now()) {}

OthersLoad::Times OthersLoad::now() {
  // cpu user nice system idle iowait irq softirq steal
  std::ifstream in("/proc/stat");
  std::string name;
  double ticks[8] = {};
  in >> name;
  for (double& one : ticks) in >> one;
  rusage own{};
  getrusage(RUSAGE_SELF, &own);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  const double busy = ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6] + ticks[7];
  return {
      .all = busy / static_cast<double>(sysconf(_SC_CLK_TCK)),
      .own = seconds(own.ru_utime) + seconds(own.ru_stime),
      .clock = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count()};
}

double OthersLoad::cores() const {
  const Times end = now();
  return coresOf(end.all - begin_.all, end.own - begin_.own, end.clock - begin_.clock,
                 sysconf(_SC_NPROCESSORS_ONLN));
}

double OthersLoad::coresOf(double all, double own, double elapsed, long available) {
  if (elapsed < kShortest) return 0;
  return std::clamp((all - own) / elapsed, 0.0, static_cast<double>(available));
}

bool OthersLoad::crowds(double busy, long threads) {
  // A machine that does nothing else keeps a few hundredths of a core busy.
  constexpr double kQuiet = 0.1;
  return busy > kQuiet &&
         static_cast<double>(threads) + busy > static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN));
}

}  // namespace muster::detail
