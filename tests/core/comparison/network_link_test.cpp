#include "muster/core/comparison/network_link.h"
#include "tests/support/test.h"

namespace muster::test {
namespace {

using doctest::Approx;

TEST_CASE("links are read with their units") {
  /// Bytes a second, and seconds of latency.
  const auto read = [](const char* text) {
    const NetworkLink link = parseNetworkLink(text);
    return digitsOf(12, link.bytesPerSecond, link.latencySeconds);
  };
  for (const char* text : {"10Gbit,50us", "10Gbit/s,50us"}) CHECK(read(text) == "1250000000 5e-05");
  for (const char* text : {"2GB,1us", "2GB,1\u00b5s", "2GB,1\u03bcs"})
    CHECK(read(text) == "2000000000 1e-06");
  CHECK(read("100Mbit,1ms") == "12500000 0.001");
  CHECK(read("1.6Tbit,200ns") == "200000000000 2e-07");
  CHECK(read("8bit,1s") == "1 1");
  CHECK(read("56kbit,0s") == "7000 0");
  CHECK(read("3MB/s,1us") == "3000000 1e-06");
  CHECK(read("4kB,1us") == "4000 1e-06");
  CHECK(linkText(parseNetworkLink("10Gbit,50us")) == "10 Gbit/s, 50 us");
  CHECK(linkText(parseNetworkLink("3MB,0s")) == "24 Mbit/s, no latency");
}

TEST_CASE("a link that cannot be read is refused, and the error names the part") {
  const auto refused = [](const std::string& text, const std::string& why) {
    CHECK_REFUSED(parseNetworkLink(text), "link " + text + ": " + why);
  };
  for (const char* text : {"10Gbit", "", "1Gbit,1us,1us"})
    refused(text, "expected a bandwidth and a latency, as in 10Gbit,50us");
  const std::string bandwidths = ": bit, kbit, Mbit, Gbit, Tbit, B, kB, MB, GB, TB",
                    units = ": ns, us, ms, s";
  refused("10,50us", "the bandwidth \"10\" needs a unit" + bandwidths);
  refused("10gb,50us", "the bandwidth \"10gb\" has an unknown unit \"gb\"; there are" + bandwidths);
  refused("10Gbit,50", "the latency \"50\" needs a unit" + units);
  refused("10Gbit,50m", "the latency \"50m\" has an unknown unit \"m\"; there are" + units);
  for (const std::string text : {"fast", "inf", ""})
    refused(text + ",50us", "the bandwidth \"" + text + "\" is not a number with a unit");
  for (const char* text : {"0Gbit,50us", "-1Gbit,50us"}) refused(text, "the bandwidth must be more than 0");
  refused("1Gbit,-1us", "the latency cannot be negative");
}

TEST_CASE("the time of an all-reduce in a ring equals one worked out by hand") {
  const NetworkLink link{.bytesPerSecond = 1e6, .latencySeconds = 0.001};
  // 2 (W - 1) latency + 2 (W - 1) / W bytes / bandwidth, for 1 MB: 2 x 0.001 + 1, 6 x 0.001 + 1.5
  CHECK(mergeSeconds(link, /*summed=*/true, 2, 1e6) == Approx(1.002));
  CHECK(mergeSeconds(link, /*summed=*/true, 4, 1e6) == Approx(1.506));
  // (W - 1) (latency + bytes / bandwidth)
  CHECK(mergeSeconds(link, /*summed=*/false, 4, 1e6) == Approx(3.003));
  CHECK(mergeSeconds(link, /*summed=*/true, 1, 1e6) == 0);
}

TEST_CASE("a projection adds the time of all merges to the computing time") {
  const NetworkLink link{.bytesPerSecond = 1e6, .latencySeconds = 0.001};
  const WorkerCost cost{.computeSeconds = 10, .rounds = 5, .bytes = 5e6};
  const auto four = projectOnLink(link, /*summed=*/true, cost, 4);
  CHECK(four.seconds == Approx(10 + 5 * 1.506));
  CHECK(four.computingShare == Approx(10 / 17.53));
  CHECK(projectOnLink(link, /*summed=*/true, {.computeSeconds = 3}, 8).seconds == 3);
  CHECK(projectOnLink(link, /*summed=*/true, {}, 8).computingShare == 1);
}

TEST_CASE("a projection counts resynchronisations as all-reduces, and shared gradients as passed on") {
  const NetworkLink link{.bytesPerSecond = 1e6, .latencySeconds = 0.001};
  const WorkerCost cost{.computeSeconds = 10,
                        .rounds = 5,
                        .bytes = 4 * 1e4 + 1e6,
                        .resynchronisations = 1,
                        .resynchronisationBytes = 1e6};
  // 3 x (0.001 + 0.01) for each message, 6 x 0.001 + 1.5 for the other round.
  CHECK(projectOnLink(link, /*summed=*/false, cost, 4).seconds == Approx(10 + 4 * 0.033 + 1.506));
}

TEST_CASE("projections cover the powers of two up to 1024, and the arms' own workers") {
  CHECK(projectedWorkers(std::array<std::int64_t, 3>{1, 2, 3}) ==
        std::vector<std::int64_t>{2, 3, 4, 8, 16, 32, 64, 128, 256, 512, 1024});
}

}  // namespace
}  // namespace muster::test
