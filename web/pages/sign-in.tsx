import { type FormEvent, useEffect, useState } from "react";
import { Refused } from "../data/api.ts";
import { signIn } from "../data/store.ts";

type Way = "password" | "credential";

/** Of an address that `cells web` has printed; it opens once, so it does not stay in the address. */
function codeInAddress(): string | null {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code !== null) history.replaceState(null, "", location.pathname + location.search);
  return code;
}

export function SignIn({ said }: { said: string | null }) {
  const [way, setWay] = useState<Way>("password");
  const [wrong, setWrong] = useState<string | null>(said);
  const [needsCode, setNeedsCode] = useState(false);
  const [busy, setBusy] = useState(false);

  const enter = async (body: object): Promise<void> => {
    setBusy(true);
    setWrong(null);
    try {
      await signIn(body);
    } catch (error) {
      if (error instanceof Refused && error.code === "second-factor") setNeedsCode(true);
      setWrong((error as Error).message);
      setBusy(false);
    }
  };
  useEffect(() => {
    const code = codeInAddress();
    if (code !== null) void enter({ oneTimeCode: code });
  }, []);
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget);
    const text = (name: string): string => String(fields.get(name) ?? "").trim();
    if (way === "credential") void enter({ credential: text("credential") });
    else {
      const [user = "", domain = text("domain")] = text("user").split("@");
      const code = text("code");
      void enter({
        ...{ user, password: String(fields.get("password") ?? "") },
        ...(domain === "" ? {} : { domain }),
        ...(code === "" ? {} : { code }),
      });
    }
  };
  return (
    <main className="sign-in" id="content">
      <h1>Cells</h1>
      <form onSubmit={submit}>
        <fieldset className="ways">
          <legend>Sign in with</legend>
          {(["password", "credential"] as const).map((each) => (
            <label key={each}>
              <input type="radio" name="way" checked={way === each} onChange={() => setWay(each)} /> {each}
            </label>
          ))}
        </fieldset>
        {way === "password" ? <PasswordFields needsCode={needsCode} /> : <CredentialField />}
        {wrong !== null && (
          <p className="wrong" role="alert">
            {wrong}
          </p>
        )}
        <button type="submit" disabled={busy}>
          {busy ? "Signing in …" : "Sign in"}
        </button>
      </form>
      <p className="hint">
        On a machine where the command line is set up, <code>cells web</code> opens this page and signs you in.
      </p>
    </main>
  );
}

const PasswordFields = ({ needsCode }: { needsCode: boolean }) => (
  <>
    <label>
      User
      <input
        name="user"
        autoComplete="username"
        placeholder="ann@ROOT/acme"
        required
        spellCheck={false}
        maxLength={500}
      />
    </label>
    <label>
      Password
      <input name="password" type="password" autoComplete="current-password" required maxLength={1024} />
    </label>
    {needsCode && (
      <label>
        Code of your second factor
        <input name="code" autoComplete="one-time-code" maxLength={100} />
      </label>
    )}
  </>
);
const CredentialField = () => (
  <label>
    Credential
    <input name="credential" type="password" autoComplete="off" required maxLength={512} />
  </label>
);
