// The C interface that app/python/sheaf/_library.py calls by ctypes. Nothing is thrown through it.
#include <arrow/c/abi.h>

#include "app/python/calls.h"
#include "io/base/store.h"

#define SHEAF_CALLED extern "C" __attribute__((visibility("default")))

/// Of Python's own interface; the interpreter that loads this library has it.
extern "C" __attribute__((weak)) void* PyCapsule_GetPointer(void* capsule, const char* name);

using sheaf::Call;
using Kept = std::shared_ptr<sheaf::KeptModel>;

SHEAF_CALLED const char* sheaf_version() {
  return SHEAF_VERSION;
}

namespace {

thread_local std::string failure;

/// What `make` gives; null where it fails, and sheaf_failure() says why.
template <class Make>
auto attempt(const Make& make) -> decltype(make()) {
  try {
    return make();
  } catch (...) {
    failure = sheaf::describe_failure().dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    return nullptr;
  }
}

}  // namespace

/// Why the last function that gave this thread null did so, as sheaf_result() would say it.
SHEAF_CALLED const char* sheaf_failure() {
  return failure.c_str();
}

/// `engine`: as sheaf_engine() gives it, or null. `table`: an Arrow C stream, which is taken over, or null.
SHEAF_CALLED Call* sheaf_start(const char* kind, const char* request, Kept* engine, ArrowArrayStream* table) {
  return attempt([&] { return new Call(kind, request, engine ? *engine : nullptr, table); });
}

SHEAF_CALLED int sheaf_wait(Call* call, int milliseconds) {
  return call->wait(milliseconds);
}

/// Valid until the same thread asks again.
SHEAF_CALLED const char* sheaf_progress(Call* call) {
  thread_local std::string text;
  text = call->progress();
  return text.c_str();
}

SHEAF_CALLED void sheaf_stop(Call* call) {
  call->stop();
}

SHEAF_CALLED const char* sheaf_result(Call* call) {
  return call->result().c_str();
}

SHEAF_CALLED ArrowArrayStream* sheaf_rows(Call* call) {
  return attempt([&] { return call->rows(); });
}

/// The model that the call opened, to be closed by sheaf_close().
SHEAF_CALLED Kept* sheaf_engine(Call* call) {
  return attempt([&] { return new Kept(call->take_model()); });
}

/// Waits for the end of the work.
SHEAF_CALLED void sheaf_free(Call* call) {
  delete call;
}

SHEAF_CALLED void sheaf_close(Kept* engine) {
  delete engine;
}

/// The name of a capsule with a stream, which must live as long as the capsule.
SHEAF_CALLED const char* sheaf_stream_name() {
  return "arrow_array_stream";
}

/// Frees the stream in a capsule, with what nobody took of it.
SHEAF_CALLED void sheaf_release(void* capsule) {
  auto* stream = static_cast<ArrowArrayStream*>(PyCapsule_GetPointer(capsule, sheaf_stream_name()));
  if (stream && stream->release) stream->release(stream);
  delete stream;
}

/// Before the process ends: Arrow's S3 must not outlive it.
SHEAF_CALLED void sheaf_end() {
  sheaf::close_stores();
}
