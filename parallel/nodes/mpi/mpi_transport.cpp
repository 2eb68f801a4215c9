#include "muster/parallel/nodes/mpi/mpi_transport.h"

#include <mpi.h>

#include <array>
#include <climits>
#include <cstdlib>

#include "muster/core/base/log.h"

namespace muster {
namespace {

std::string textOf(int code) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  return {text.data(), static_cast<std::size_t>(length)};
}

void check(int code, const char* call) {
  if (code != MPI_SUCCESS) throw NodeFailure(fmt::format("MPI: {}: {}", call, textOf(code)));
}

void (*atFinalizing)() = nullptr;

int finalizing(MPI_Comm, int, void*, void*) {
  atFinalizing();
  return MPI_SUCCESS;
}

/// MPI_Finalize deletes the attributes of MPI_COMM_SELF before it does anything else.
void callAtFinalize(void (*function)()) {
  atFinalizing = function;
  int key = MPI_KEYVAL_INVALID;
  check(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, finalizing, &key, nullptr), "MPI_Comm_create_keyval");
  check(MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr), "MPI_Comm_set_attr");
}

class MpiTransport final : public NodeTransport {
 public:
  explicit MpiTransport(void (*atFinalize)()) {
    int initialised = 0, finalised = 0, level = 0;
    check(MPI_Initialized(&initialised), "MPI_Initialized");
    check(MPI_Finalized(&finalised), "MPI_Finalized");
    require(!finalised, "nodes: MPI is finalised, and a process can initialise it only once");
    if (initialised) {
      check(MPI_Query_thread(&level), "MPI_Query_thread");
      require(level >= MPI_THREAD_SERIALIZED,
              "nodes: the program has initialised MPI for one thread; it needs MPI_THREAD_SERIALIZED, or to "
              "leave that to muster");
      check(MPI_Comm_dup(MPI_COMM_WORLD, &world_), "MPI_Comm_dup");
      callAtFinalize(atFinalize);
    } else {
      check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level), "MPI_Init_thread");
      ours_ = true;
    }
    check(MPI_Comm_set_errhandler(world_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    check(MPI_Comm_rank(world_, &node_), "MPI_Comm_rank");
    check(MPI_Comm_size(world_, &nodes_), "MPI_Comm_size");
  }
  ~MpiTransport() override {
    if (ours_ && !abandoned_) MPI_Finalize();
  }
  MpiTransport(const MpiTransport&) = delete;
  MpiTransport& operator=(const MpiTransport&) = delete;

  int node() const override { return node_; }
  int nodes() const override { return nodes_; }
  std::string host() const override {
    std::array<char, MPI_MAX_PROCESSOR_NAME> name{};
    int length = 0;
    MPI_Get_processor_name(name.data(), &length);
    return {name.data(), static_cast<std::size_t>(length)};
  }
  std::string describe() const override { return "MPI"; }

  void begin(const NodeMessage& message, int ticket) override {
    require(message.bytes.size() <= INT_MAX, "MPI: a message of {} bytes", message.bytes.size());
    const auto bytes = static_cast<int>(message.bytes.size());
    MPI_Request request = MPI_REQUEST_NULL;
    if (message.way == NodeMessage::Way::Send)
      check(MPI_Isend(message.bytes.data(), bytes, MPI_BYTE, message.node, message.channel, world_, &request),
            "MPI_Isend");
    else
      check(MPI_Irecv(message.bytes.data(), bytes, MPI_BYTE, message.node, message.channel, world_, &request),
            "MPI_Irecv");
    requests_.push_back(request);
    open_.push_back({ticket, message.way == NodeMessage::Way::Receive ? bytes : -1, message.node});
  }

  void poll(std::vector<int>& done) override {
    if (requests_.empty()) return;
    indices_.resize(requests_.size());
    statuses_.resize(requests_.size());
    int count = 0;
    const int code = MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count,
                                  indices_.data(), statuses_.data());
    if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) check(code, "MPI_Testsome");
    for (int i = 0; i < count; ++i) {
      const Open& one = open_[static_cast<std::size_t>(indices_[static_cast<std::size_t>(i)])];
      const MPI_Status& status = statuses_[static_cast<std::size_t>(i)];
      if (code == MPI_ERR_IN_STATUS) check(status.MPI_ERROR, "a message");
      if (one.bytes >= 0) checkSize(one.node, one.bytes, status);
      done.push_back(one.ticket);
    }
    // Requests that are done are MPI_REQUEST_NULL now.
    std::size_t kept = 0;
    for (std::size_t i = 0; i < requests_.size() && count > 0; ++i) {
      if (requests_[i] == MPI_REQUEST_NULL) continue;
      requests_[kept] = requests_[i];
      open_[kept++] = open_[i];
    }
    if (count == 0) return;
    requests_.resize(kept);
    open_.resize(kept);
  }

  void abandon() noexcept override { abandoned_ = true; }

 private:
  struct Open {
    int ticket = 0;
    int bytes = 0;  // expected bytes; -1: a message that is sent
    int node = 0;
  };

  static void checkSize(int node, int expected, const MPI_Status& status) {
    int bytes = 0;
    check(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
    if (bytes != expected)
      throw NodeFailure(
          fmt::format("node {} has sent {} bytes where {} were expected", node, bytes, expected));
  }

  MPI_Comm world_ = MPI_COMM_WORLD;
  int node_ = 0, nodes_ = 1;
  bool ours_ = false, abandoned_ = false;
  std::vector<MPI_Request> requests_;
  std::vector<Open> open_;  // [request]
  std::vector<int> indices_;
  std::vector<MPI_Status> statuses_;
};

}  // namespace

std::unique_ptr<NodeTransport> makeMpiTransport(void (*atFinalize)()) {
  return std::make_unique<MpiTransport>(atFinalize);
}

void abortMpi() {
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::_Exit(1);
}

}  // namespace muster
