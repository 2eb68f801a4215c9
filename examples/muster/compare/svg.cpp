#include "examples/muster/compare/svg.h"

#include <algorithm>
#include <cmath>

#include "examples/muster/compare/number_text.h"

namespace comparing {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

std::vector<double> niceTicks(double low, double high, int count) {
  if (!(high > low)) return {low};
  const double rough = (high - low) / std::max(count, 1), power = std::pow(10, std::floor(std::log10(rough)));
  const double share = rough / power;
  const double step = (share <= 1 ? 1 : share <= 2 ? 2 : share <= 5 ? 5 : 10) * power;
  std::vector<double> ticks;
  for (double i = std::ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; ++i)
    ticks.push_back(i * step);
  return ticks;
}

std::vector<double> logTicks(double low, double high) {
  std::vector<double> ticks;
  const bool few = std::log10(high / low) < 2;
  for (double power = std::pow(10, std::floor(std::log10(low))); power <= high * (1 + 1e-9); power *= 10)
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double tick = power * factor;
      if ((factor == 1 || few) && tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9))
        ticks.push_back(tick);
    }
  return ticks;
}

std::string tickText(double value) {
  if (std::abs(value) >= 1000 && std::abs(value) < 1e7) return groupedNumber(value);
  return fmt::format("{:.4g}", std::abs(value) < 1e-12 ? 0.0 : value);
}

}  // namespace comparing
