# What every target of this project is compiled with. Compilers that we know have nothing to say: what they say is an error.
option(KUMI_WERROR "warnings of g++ 12 and clang 14 are errors" ON)
if(KUMI_WERROR AND ((CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION MATCHES "^12\\.") OR
   (CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION MATCHES "^14\\.")))
    set(CMAKE_COMPILE_WARNING_AS_ERROR ON)
endif()
add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-missing-field-initializers)
if(KUMI_SANITIZE STREQUAL "address")
    # Undefined behaviour is an illegal instruction, or a trap, which AddressSanitizer shows as it shows what it finds itself,
    # told handle_sigill=1:handle_sigtrap=1 in ASAN_OPTIONS. To say in words what is wrong would take g++ a quarter of its time.
    add_compile_options(-fsanitize=address,undefined -fsanitize-undefined-trap-on-error -fno-omit-frame-pointer)
    add_link_options(-fsanitize=address,undefined)
    add_compile_definitions(KUMI_ADDRESS_SANITIZER)
elseif(KUMI_SANITIZE STREQUAL "thread")
    add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
    add_link_options(-fsanitize=thread)
    add_compile_definitions(KUMI_THREAD_SANITIZER)
elseif(KUMI_SANITIZE)
    message(FATAL_ERROR "KUMI_SANITIZE is ${KUMI_SANITIZE}: say address or thread")
endif()
if(KUMI_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-Wno-maybe-uninitialized) # instrumented library code looks so to g++ 12
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND (KUMI_UNITY OR KUMI_TESTS))
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>) # sources that are compiled together look like headers
endif()
