// co_comm.h: a lock for coroutines, and its guard. The coroutine that has waited longest gets it
// next.
#ifndef WEFT_POSIX_LIBCO_CO_COMM_H
#define WEFT_POSIX_LIBCO_CO_COMM_H

#include "co_routine.h"

class clsCoMutex {
public:
    clsCoMutex();
    ~clsCoMutex();

    void CoLock();
    void CoUnLock();

private:
    clsCoMutex(const clsCoMutex&);
    clsCoMutex& operator=(const clsCoMutex&);

    void* permit_;
};

class clsSmartLock {
public:
    explicit clsSmartLock(clsCoMutex* m) : mutex_(m) { mutex_->CoLock(); }
    ~clsSmartLock() { mutex_->CoUnLock(); }

private:
    clsSmartLock(const clsSmartLock&);
    clsSmartLock& operator=(const clsSmartLock&);

    clsCoMutex* mutex_;
};

#endif
