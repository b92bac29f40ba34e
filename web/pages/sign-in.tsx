import { type FormEvent, useEffect, useState } from "react";
import { type CodeOf, type SignedIn, signedInAs } from "../../model/contract/tenancy/sign-in.ts";
import { Refused } from "../data/api.ts";
import { readCode, register, signIn } from "../data/store.ts";
import { Waiting } from "../parts/bits.tsx";

const ways = ["password", "credential", "invitation"] as const;
type Way = (typeof ways)[number];

/** Of an address that `cells web` has printed; it opens once, so it does not stay in the address. */
export function codeInAddress(): string | null {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code !== null) history.replaceState(null, "", location.pathname + location.search);
  return code;
}

/** A link by which somebody makes himself an account; it opens once, and does not stay in the address either. */
function invitationInAddress(): string {
  const link = new URLSearchParams(location.hash.slice(1)).get("invitation");
  if (link !== null) history.replaceState(null, "", location.pathname + location.search);
  return link ?? "";
}

/** Anybody can make a link with a code of his own: nobody is signed in by it before he has read as whom, and pressed. */
export function SignInByCode({ code, who, done }: { code: string; who: SignedIn | null; done: () => void }) {
  const [is, setIs] = useState<CodeOf | null>(null);
  const [wrong, setWrong] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    readCode(code).then(setIs, (error: Error) => setWrong(error.message));
  }, [code]);
  const enter = async (): Promise<void> => {
    setBusy(true);
    setWrong(null);
    try {
      await signIn({ oneTimeCode: code, as: is?.as });
      done();
    } catch (error) {
      setWrong((error as Error).message);
      setBusy(false);
    }
  };
  if (is === null && wrong === null) return <Waiting what="the gateway" />;
  return (
    <main className="sign-in" id="content">
      <h1>Cells</h1>
      {is !== null && (
        <p>
          This address signs you in as <strong>{is.as}</strong>
          {is.account !== null && (
            <>
              {" "}
              of the account <strong>{is.account}</strong>
            </>
          )}
          . Go on if you asked for it yourself, as <code>cells web</code> does; whoever sent it to you sees what you do
          then.
          {who !== null && ` You are signed in as ${signedInAs(who)} now.`}
        </p>
      )}
      {wrong !== null && (
        <p className="wrong" role="alert">
          {wrong}
        </p>
      )}
      <p className="choices">
        {is !== null && (
          <button type="button" disabled={busy} onClick={() => void enter()}>
            {busy ? "Signing in …" : `Sign in as ${is.as}`}
          </button>
        )}
        <button type="button" className="quiet" onClick={done}>
          {who === null ? "Sign in otherwise" : `Stay ${signedInAs(who)}`}
        </button>
      </p>
    </main>
  );
}

export function SignIn({ said }: { said: string | null }) {
  const [link] = useState(invitationInAddress);
  const [way, setWay] = useState<Way>(link === "" ? "password" : "invitation");
  const [wrong, setWrong] = useState<string | null>(said);
  const [needsCode, setNeedsCode] = useState(false);
  const [busy, setBusy] = useState(false);

  const enter = async (work: () => Promise<void>): Promise<void> => {
    setBusy(true);
    setWrong(null);
    try {
      await work();
    } catch (error) {
      if (error instanceof Refused && error.code === "second-factor") setNeedsCode(true);
      setWrong((error as Error).message);
      setBusy(false);
    }
  };
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget);
    const text = (name: string): string => String(fields.get(name) ?? "").trim();
    const password = String(fields.get("password") ?? "");
    if (way === "credential") void enter(() => signIn({ credential: text("credential") }));
    else if (way === "invitation") void enter(() => register({ link: text("link"), name: text("user"), password }));
    else {
      const [user = "", domain = text("domain")] = text("user").split("@");
      const code = text("code");
      const more = { ...(domain === "" ? {} : { domain }), ...(code === "" ? {} : { code }) };
      void enter(() => signIn({ user, password, ...more }));
    }
  };
  return (
    <main className="sign-in" id="content">
      <h1>Cells</h1>
      <form onSubmit={submit}>
        <fieldset className="ways">
          <legend>Sign in with</legend>
          {ways.map((each) => (
            <label key={each}>
              <input type="radio" name="way" checked={way === each} onChange={() => setWay(each)} /> {each}
            </label>
          ))}
        </fieldset>
        {way === "password" && <PasswordFields needsCode={needsCode} />}
        {way === "credential" && <CredentialField />}
        {way === "invitation" && <InvitationFields link={link} />}
        {wrong !== null && (
          <p className="wrong" role="alert">
            {wrong}
          </p>
        )}
        <button type="submit" disabled={busy}>
          {busy ? "Signing in …" : way === "invitation" ? "Make my account" : "Sign in"}
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
const InvitationFields = ({ link }: { link: string }) => (
  <>
    <label>
      Invitation
      <input name="link" defaultValue={link} autoComplete="off" required spellCheck={false} maxLength={512} />
    </label>
    <label>
      Name of your account, and of you
      <input name="user" autoComplete="username" required spellCheck={false} maxLength={64} />
    </label>
    <label>
      A password
      <input name="password" type="password" autoComplete="new-password" required maxLength={1024} />
    </label>
  </>
);
const CredentialField = () => (
  <label>
    Credential
    <input name="credential" type="password" autoComplete="off" required maxLength={512} />
  </label>
);
