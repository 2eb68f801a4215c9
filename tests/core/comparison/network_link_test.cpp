#include "muster/core/comparison/network_link.h"
#include "tests/support/test.h"

namespace muster {
namespace {

using doctest::Approx;

using muster::test::thrown;

TEST_CASE("links are read with their units") {
  const auto check = [](const char* text, double bytesPerSecond, double latency) {
    CAPTURE(text);
    const NetworkLink link = parseNetworkLink(text);
    CHECK(link.bytesPerSecond == Approx(bytesPerSecond).epsilon(1e-12));
    CHECK(link.latencySeconds == Approx(latency).epsilon(1e-12));
  };
  check("10Gbit,50us", 1.25e9, 50e-6);
  check("10Gbit/s,50us", 1.25e9, 50e-6);
  check("100Mbit,1ms", 12.5e6, 1e-3);
  check("1.6Tbit,200ns", 200e9, 200e-9);
  check("8bit,1s", 1, 1);
  check("56kbit,0s", 7000, 0);
  check("2GB,1us", 2e9, 1e-6);
  check("2GB,1\u00b5s", 2e9, 1e-6);
  check("2GB,1\u03bcs", 2e9, 1e-6);
  check("3MB/s,1us", 3e6, 1e-6);
  check("4kB,1us", 4e3, 1e-6);
  CHECK(linkText(parseNetworkLink("10Gbit,50us")) == "10 Gbit/s, 50 us");
  CHECK(linkText(parseNetworkLink("3MB,0s")) == "24 Mbit/s, no latency");
}

TEST_CASE("a link that cannot be read is refused, and the error names the part") {
  const auto refusal = [](const char* text) {
    return thrown<InvalidArgument>([&] { parseNetworkLink(text); });
  };
  const std::string form = ": expected a bandwidth and a latency, as in 10Gbit,50us";
  CHECK(refusal("10Gbit") == "link 10Gbit" + form);
  CHECK(refusal("") == "link " + form);
  CHECK(refusal("1Gbit,1us,1us") == "link 1Gbit,1us,1us" + form);
  const std::string bandwidths = ": bit, kbit, Mbit, Gbit, Tbit, B, kB, MB, GB, TB";
  CHECK(refusal("10,50us") == "link 10,50us: the bandwidth \"10\" needs a unit" + bandwidths);
  CHECK(refusal("10gb,50us") ==
        "link 10gb,50us: the bandwidth \"10gb\" has an unknown unit \"gb\"; there are" + bandwidths);
  CHECK(refusal("10Gbit,50") == "link 10Gbit,50: the latency \"50\" needs a unit: ns, us, ms, s");
  CHECK(refusal("10Gbit,50m") ==
        "link 10Gbit,50m: the latency \"50m\" has an unknown unit \"m\"; there are: ns, us, ms, s");
  CHECK(refusal("fast,50us") == "link fast,50us: the bandwidth \"fast\" is not a number with a unit");
  CHECK(refusal("inf,50us") == "link inf,50us: the bandwidth \"inf\" is not a number with a unit");
  CHECK(refusal(",50us") == "link ,50us: the bandwidth \"\" is not a number with a unit");
  CHECK(refusal("0Gbit,50us") == "link 0Gbit,50us: the bandwidth must be more than 0");
  CHECK(refusal("-1Gbit,50us") == "link -1Gbit,50us: the bandwidth must be more than 0");
  CHECK(refusal("1Gbit,-1us") == "link 1Gbit,-1us: the latency cannot be negative");
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

TEST_CASE(
    "a projection counts resynchronisations as all-reduces, and messages of shared gradients as passed on") {
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
}  // namespace muster
