#pragma once

// Everything that most programs need: the job, its messages, remote memory, groups. Three headers have more:
//
//     #include <kumi/functions.hpp>    calls of functions on other nodes: Handlers::function(), Job::invoke()
//     #include <kumi/coroutine.hpp>    co_await of a Future, and coroutines that return one
//     #include <kumi/mpi.hpp>          Kumi inside a program that MPI has started; link kumi::mpi
//
// Compiling this header takes less than a second; a header of a program that needs one thing, say Result or global_ptr,
// may include its header alone. cmake/public_headers.txt lists what programs may include. All other headers are Kumi's
// own and may change at any time.

#include "kumi/base/bytes.hpp"
#include "kumi/base/clock.hpp"
#include "kumi/base/result.hpp"
#include "kumi/job/job.hpp"
#include "kumi/job/pm_job.hpp"
