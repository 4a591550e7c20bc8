//! The disks as SQLite sees them: a VFS that becomes the default of the process when the first disk is mounted.
//!
//! Files in folders without a disk, and files without a name (SQLite's temporary ones), are refused. So a test that
//! mounts a disk also shows that nothing is written elsewhere.

#![allow(unsafe_code, reason = "a VFS is a table of C functions")]

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Mutex, Once, PoisonError, Weak};

use rusqlite::ffi;

use crate::Disk;
use crate::disk::{Contents, Failed};
use crate::locks::FileLocks;

/// The disks by their folders.
static DISKS: Mutex<BTreeMap<PathBuf, Weak<Mutex<Contents>>>> = Mutex::new(BTreeMap::new());
static CONNECTIONS: AtomicU64 = AtomicU64::new(0);

/// Makes SQLite look for the files of a folder on a disk.
pub(crate) fn mount(folder: PathBuf, contents: Weak<Mutex<Contents>>) {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(register);
    let mut disks = DISKS.lock().unwrap_or_else(PoisonError::into_inner);
    disks.retain(|_, contents| contents.strong_count() > 0);
    disks.insert(folder, contents);
}

fn disk_of(path: &Path) -> Option<Disk> {
    let disks = DISKS.lock().unwrap_or_else(PoisonError::into_inner);
    disks.get(path.parent()?).and_then(Disk::mounted)
}

fn register() {
    // SAFETY: SQLite's default VFS lives as long as the process and is only read. The new one is never freed; the
    // functions it takes over (randomness, time, full paths) do not look at the VFS they are called through.
    unsafe {
        let default = ffi::sqlite3_vfs_find(std::ptr::null());
        assert!(!default.is_null(), "SQLite has a default VFS");
        let mut vfs = *default;
        vfs.szOsFile = c_int::try_from(size_of::<OpenFile>()).expect("an open file is small");
        vfs.zName = c"crashkit".as_ptr();
        vfs.pNext = std::ptr::null_mut();
        vfs.xOpen = Some(open);
        vfs.xDelete = Some(delete);
        vfs.xAccess = Some(access);
        let code = ffi::sqlite3_vfs_register(Box::leak(Box::new(vfs)), 1);
        assert_eq!(code, ffi::SQLITE_OK, "SQLite takes the VFS");
    }
}

/// An `sqlite3_file` of SQLite, followed by our own handle.
#[repr(C)]
struct OpenFile {
    base: ffi::sqlite3_file,
    handle: *mut Handle,
}

/// A file that a connection has open.
struct Handle {
    disk: Disk,
    name: String,
    /// Tells connections apart.
    connection: u64,
}

static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};

fn code(outcome: Result<(), Failed>) -> c_int {
    match outcome {
        Ok(()) => ffi::SQLITE_OK,
        Err(Failed::Full) => ffi::SQLITE_FULL,
        Err(Failed::Dead | Failed::Absent) => ffi::SQLITE_IOERR,
    }
}

/// The disk and the name on it of a path that SQLite names.
///
/// # Safety
///
/// `path` is null or a C string.
unsafe fn located(path: *const c_char) -> Option<(Disk, String)> {
    if path.is_null() {
        return None;
    }
    // SAFETY: as the caller says.
    let path = Path::new(unsafe { CStr::from_ptr(path) }.to_str().ok()?);
    Some((disk_of(path)?, path.file_name()?.to_str()?.to_owned()))
}

/// The handle of a file that SQLite names.
///
/// # Safety
///
/// `file` is one that [`open`] opened and [`close`] did not close; SQLite uses it on one thread at a time.
unsafe fn handle<'a>(file: *mut ffi::sqlite3_file) -> &'a Handle {
    // SAFETY: as the caller says; `open` put the handle there.
    unsafe { &*(*file.cast::<OpenFile>()).handle }
}

unsafe extern "C" fn open(
    _vfs: *mut ffi::sqlite3_vfs,
    path: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    // SAFETY: SQLite gives room for an `OpenFile`, a path that is null or a C string, and flags that may be null.
    unsafe {
        (*file).pMethods = std::ptr::null();
        let Some((disk, name)) = located(path) else {
            return ffi::SQLITE_CANTOPEN;
        };
        {
            let mut contents = disk.lock();
            if contents.check_power().is_err() {
                return ffi::SQLITE_IOERR;
            }
            if flags & ffi::SQLITE_OPEN_MAIN_DB != 0 {
                contents.provide(&name);
            } else if flags & ffi::SQLITE_OPEN_CREATE != 0 {
                contents.create(&name);
            } else if !contents.exists(&name) {
                return ffi::SQLITE_CANTOPEN;
            }
        }
        if !out_flags.is_null() {
            *out_flags = flags;
        }
        let connection = CONNECTIONS.fetch_add(1, Ordering::Relaxed);
        (*file.cast::<OpenFile>()).handle = Box::into_raw(Box::new(Handle { disk, name, connection }));
        (*file).pMethods = &raw const METHODS;
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn delete(_vfs: *mut ffi::sqlite3_vfs, path: *const c_char, sync_folder: c_int) -> c_int {
    // SAFETY: SQLite gives a C string.
    let Some((disk, name)) = (unsafe { located(path) }) else {
        return ffi::SQLITE_IOERR;
    };
    match disk.lock().remove(&name, sync_folder != 0) {
        Err(Failed::Absent) => ffi::SQLITE_IOERR_DELETE_NOENT,
        outcome => code(outcome),
    }
}

unsafe extern "C" fn access(
    _vfs: *mut ffi::sqlite3_vfs,
    path: *const c_char,
    _flags: c_int,
    result: *mut c_int,
) -> c_int {
    // SAFETY: SQLite gives a C string and room for the answer.
    unsafe {
        let exists = located(path).is_some_and(|(disk, name)| {
            let contents = disk.lock();
            contents.exists(&name) && contents.size(&name).map_or(true, |size| size > 0)
        });
        *result = exists.into();
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: SQLite closes each file once; the handle came from a box.
    let handle = unsafe {
        (*file).pMethods = std::ptr::null();
        Box::from_raw((*file.cast::<OpenFile>()).handle)
    };
    let mut contents = handle.disk.lock();
    if let Some(locks) = contents.locks.get_mut(&handle.name) {
        locks.unlock(handle.connection, ffi::SQLITE_LOCK_NONE);
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn read(
    file: *mut ffi::sqlite3_file,
    target: *mut c_void,
    n_bytes: c_int,
    offset: ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: SQLite gives an open file and room for this many bytes.
    let (handle, target) =
        unsafe { (handle(file), std::slice::from_raw_parts_mut(target.cast::<u8>(), n_bytes as usize)) };
    let outcome = handle.disk.lock().read(&handle.name, offset as usize, target);
    match outcome {
        Ok(found) if found < target.len() => {
            target[found..].fill(0);
            ffi::SQLITE_IOERR_SHORT_READ
        }
        outcome => code(outcome.map(drop)),
    }
}

unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    source: *const c_void,
    n_bytes: c_int,
    offset: ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: SQLite gives an open file and this many bytes.
    let (handle, source) = unsafe { (handle(file), std::slice::from_raw_parts(source.cast::<u8>(), n_bytes as usize)) };
    code(handle.disk.lock().write(&handle.name, offset as usize, source))
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, size: ffi::sqlite3_int64) -> c_int {
    // SAFETY: SQLite gives an open file.
    let handle = unsafe { handle(file) };
    code(handle.disk.lock().truncate(&handle.name, size as usize))
}

unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, _flags: c_int) -> c_int {
    // SAFETY: SQLite gives an open file.
    let handle = unsafe { handle(file) };
    code(handle.disk.lock().flush(&handle.name))
}

unsafe extern "C" fn file_size(file: *mut ffi::sqlite3_file, result: *mut ffi::sqlite3_int64) -> c_int {
    // SAFETY: SQLite gives an open file and room for the answer.
    unsafe {
        let handle = handle(file);
        let outcome = handle.disk.lock().size(&handle.name);
        code(outcome.map(|size| *result = size as ffi::sqlite3_int64))
    }
}

unsafe extern "C" fn lock(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    // SAFETY: SQLite gives an open file.
    let handle = unsafe { handle(file) };
    let mut contents = handle.disk.lock();
    if contents.check_power().is_err() {
        return ffi::SQLITE_IOERR;
    }
    let is_locked = contents.locks.entry(handle.name.clone()).or_default().lock(handle.connection, level);
    if is_locked { ffi::SQLITE_OK } else { ffi::SQLITE_BUSY }
}

unsafe extern "C" fn unlock(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    // SAFETY: SQLite gives an open file.
    let handle = unsafe { handle(file) };
    handle.disk.lock().locks.entry(handle.name.clone()).or_default().unlock(handle.connection, level);
    ffi::SQLITE_OK
}

unsafe extern "C" fn check_reserved_lock(file: *mut ffi::sqlite3_file, result: *mut c_int) -> c_int {
    // SAFETY: SQLite gives an open file and room for the answer.
    unsafe {
        let handle = handle(file);
        let contents = handle.disk.lock();
        *result = contents.locks.get(&handle.name).is_some_and(FileLocks::is_reserved).into();
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn file_control(_file: *mut ffi::sqlite3_file, _operation: c_int, _argument: *mut c_void) -> c_int {
    ffi::SQLITE_NOTFOUND
}

unsafe extern "C" fn sector_size(_file: *mut ffi::sqlite3_file) -> c_int {
    4096
}

unsafe extern "C" fn device_characteristics(_file: *mut ffi::sqlite3_file) -> c_int {
    ffi::SQLITE_IOCAP_POWERSAFE_OVERWRITE
}

unsafe extern "C" fn shm_map(
    file: *mut ffi::sqlite3_file,
    region: c_int,
    size: c_int,
    extend: c_int,
    result: *mut *mut c_void,
) -> c_int {
    // SAFETY: SQLite gives an open file and room for the answer. A region stays where it is until the last connection
    // unmaps it; it is made of atomics, since SQLite's connections write to it beside each other.
    unsafe {
        let handle = handle(file);
        let mut contents = handle.disk.lock();
        if contents.check_power().is_err() {
            return ffi::SQLITE_IOERR;
        }
        let memory = contents.memory.entry(handle.name.clone()).or_default();
        if !memory.users.contains(&handle.connection) {
            memory.users.push(handle.connection);
        }
        let region = region as usize;
        while memory.regions.len() <= region && extend != 0 {
            memory.regions.push((0..size as usize / 8).map(|_| AtomicU64::new(0)).collect());
        }
        *result = memory
            .regions
            .get(region)
            .map_or(std::ptr::null_mut(), |region| region.as_ptr().cast_mut().cast::<c_void>());
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn shm_lock(file: *mut ffi::sqlite3_file, first: c_int, n_locks: c_int, flags: c_int) -> c_int {
    // SAFETY: SQLite gives an open file.
    let handle = unsafe { handle(file) };
    let mut contents = handle.disk.lock();
    let memory = contents.memory.entry(handle.name.clone()).or_default();
    let is_locked = memory.lock(handle.connection, first as usize, n_locks as usize, flags);
    if is_locked { ffi::SQLITE_OK } else { ffi::SQLITE_BUSY }
}

unsafe extern "C" fn shm_barrier(_file: *mut ffi::sqlite3_file) {
    fence(Ordering::SeqCst);
}

unsafe extern "C" fn shm_unmap(file: *mut ffi::sqlite3_file, _delete: c_int) -> c_int {
    // SAFETY: SQLite gives an open file.
    let handle = unsafe { handle(file) };
    let mut contents = handle.disk.lock();
    if let Some(memory) = contents.memory.get_mut(&handle.name) {
        let all = ffi::SQLITE_SHM_NLOCK as usize;
        memory.lock(handle.connection, 0, all, ffi::SQLITE_SHM_UNLOCK);
        memory.users.retain(|user| *user != handle.connection);
        if memory.users.is_empty() {
            contents.memory.remove(&handle.name);
        }
    }
    ffi::SQLITE_OK
}
