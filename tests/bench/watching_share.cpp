// Measures the share of a training's computing that monitoring costs: the MNIST convnet on noise, two
// workers, merged every 3 iterations. Uses processor time, which other programs do not disturb: the
// listener's calls, counted twice at merges, when two workers wait, and the page's own thread that serves a
// browser. Arguments: epochs (20), batch (16 and 128).
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "muster/core/listeners/progress_listener.h"
#include "muster/core/nn/models/convnet.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/parallel/parallel_wrapper.h"
#include "tests/bench/noise.h"
#ifdef MUSTER_WITH_TENSORBOARD
#include "muster/core/listeners/watch/tensorboard/tensorboard_listener.h"
#endif
#ifdef MUSTER_WITH_PAGE
#include "muster/core/listeners/watch/page/page_listener.h"
#endif

using namespace muster;

namespace {

std::int64_t nanoseconds(clockid_t whose) {
  timespec time{};
  ::clock_gettime(whose, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

/// The cost of reading this clock, about as much as a short call of a listener.
std::int64_t clockCost() {
  static const std::int64_t cost = [] {
    std::int64_t sum = 0;
    for (int i = 0; i < 10'000; ++i) {
      const auto before = nanoseconds(CLOCK_THREAD_CPUTIME_ID);
      sum += nanoseconds(CLOCK_THREAD_CPUTIME_ID) - before;
    }
    return sum / 10'000;
  }();
  return cost;
}

/// Calls another listener and sums the processor time of its calls.
class Timed final : public Listener {
 public:
  explicit Timed(std::shared_ptr<Listener> listener) : listener_(std::move(listener)) {}
  ListenerScope scope() const override { return listener_->scope(); }
  void onFitStart(const FitEvent& e) override { listener_->onFitStart(e); }
  void onEpochStart(const EpochEvent& e) override { listener_->onEpochStart(e); }
  void onIteration(const IterationEvent& e) override {
    time([&] { listener_->onIteration(e); });
  }
  void onMerge(const MergeEvent& e) override {
    time([&] { listener_->onMerge(e); });
  }
  void onEpochEnd(const EpochEvent& e) override {
    time([&] { listener_->onEpochEnd(e); });
  }
  void onFitEnd(Trainer& trainer) override { listener_->onFitEnd(trainer); }
  std::int64_t computed() const { return computed_; }

 private:
  template <typename Call>
  void time(Call call) {
    const auto before = nanoseconds(CLOCK_THREAD_CPUTIME_ID);
    call();
    computed_ += nanoseconds(CLOCK_THREAD_CPUTIME_ID) - before - clockCost();
  }
  std::shared_ptr<Listener> listener_;
  std::int64_t computed_ = 0;
};

/// Does nothing: measures the cost of the measurement itself.
class Nothing final : public Listener {
 public:
  explicit Nothing(ListenerScope scope) : scope_(scope) {}
  ListenerScope scope() const override { return scope_; }

 private:
  ListenerScope scope_;
};

/// Threads of this process, by number.
std::set<std::string> threads() {
  std::set<std::string> all;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) all.insert(entry.path());
  return all;
}

/// @param watched  of worker and merged scope. @param thread  that works for the listener; "": none.
void measure(const char* name, std::shared_ptr<Listener> merged, std::shared_ptr<Listener> ofWorkers,
             const std::string& thread, std::int64_t batch, std::int64_t epochs) {
  auto data = noise(60, batch);
  MultiLayerNetwork model(convnet());
  model.init();
  const auto atMerges = std::make_shared<Timed>(std::move(merged));
  const auto atSteps = std::make_shared<Timed>(std::move(ofWorkers));
  auto wrapper =
      ParallelWrapper::Builder(model).workers(2).averagingFrequency(3).listeners({atMerges, atSteps}).build();
  const auto before = nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
  clockCost();
  wrapper.fit(data, epochs);
  const auto whole = static_cast<double>(nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - before);
  std::int64_t beside = 0;
  if (!thread.empty()) std::ifstream(thread + "/schedstat") >> beside;
  const auto share = [&](std::int64_t part) { return 100 * static_cast<double>(part) / whole; };
  fmt::print("| {} | {} | {:.1f} s | {:.3f} % | {:.3f} % | {:.3f} % | {:.3f} % |\n", name, batch,
             whole * 1e-9, share(2 * atMerges->computed()), share(atSteps->computed()), share(beside),
             share(2 * atMerges->computed() + atSteps->computed() + beside));
  std::fflush(stdout);
}

#ifdef MUSTER_WITH_PAGE
/// Starts a process that reads the page like a browser.
pid_t lookOn(const PageListener& page) {
  const auto address = page.address();
  const auto request =
      fmt::format("GET /events HTTP/1.1\r\nHost: localhost:{0}\r\nCookie: muster-{0}={1}\r\n\r\n",
                  page.port(), address.substr(address.find('=') + 1));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(page.port()));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int connection = ::socket(AF_INET, SOCK_STREAM, 0);
  if (::connect(connection, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0 ||
      ::send(connection, request.data(), request.size(), 0) < 0)
    ::_exit(1);
  char bytes[65536];
  while (::recv(connection, bytes, sizeof bytes, 0) > 0) {
  }
  ::_exit(0);
}
#endif

}  // namespace

int main(int argc, char** argv) {
  muster::showProgress(false);
  const std::int64_t epochs = argc > 1 ? std::stoll(argv[1]) : 20;
  fmt::print(
      "| watched by | batch | the training computes | calls at merges | calls at steps | beside them | all "
      "|\n"
      "|---|---|---|---|---|---|---|\n");
  const auto batches =
      argc > 2 ? std::vector<std::int64_t>{std::stoll(argv[2])} : std::vector<std::int64_t>{16, 128};
  for (const auto batch : batches) {
    measure("nothing", std::make_shared<Nothing>(ListenerScope::Merged),
            std::make_shared<Nothing>(ListenerScope::Worker), "", batch, epochs);
#ifdef MUSTER_WITH_TENSORBOARD
    const auto directory =
        std::filesystem::temp_directory_path() / fmt::format("muster-watching-{}", ::getpid());
    const auto board = std::make_shared<TensorBoardListener>(directory);
    measure("TensorBoard", board, board->workers(), "", batch, epochs);
    std::filesystem::remove_all(directory);
#endif
#ifdef MUSTER_WITH_PAGE
    const auto before = threads();
    auto page = std::make_shared<PageListener>(PageOptions{.sink = [](std::string_view) {}});
    std::string thread;
    for (const auto& path : threads())
      if (!before.contains(path)) thread = path;
    const pid_t browser = lookOn(*page);
    measure("page, with a browser", page, page->workers(), thread, batch, epochs);
    page.reset();
    ::waitpid(browser, nullptr, 0);
#endif
  }
}
